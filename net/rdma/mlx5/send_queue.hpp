/// The posting end of an mlx5 send queue, shared by CPU and GPU code.
///
/// A message is two WQEs, payload and seqno, and one doorbell; or one WQE with the seqno as a
/// second gather entry, pushed through the BlueFlame register. Ring, doorbell record and completion
/// lie in memory that poster and adapter both see. One poster at a time: kernels of one stream, or
/// one thread.
///
/// What differs between CPU and GPU is a policy `P`:
///   void store_block(wqe_block* to, const wqe_block&)   into the ring
///   void release()                                      all stores before it, before all after it
///   void store_record(uint32_t* to, uint32_t)
///   void store_doorbell(uint64_t* to, uint64_t)         one 64-bit store, never merged or split
///   void push_block(uint64_t* to, const wqe_block&)     64 bytes to a BlueFlame register
///   uint32_t load_completion(const uint32_t* from)
///   post_status over()                                  deadline and abort of a wait for room
#pragma once

#include "gpu/ring/ring.hpp"
#include "net/rdma/mlx5/wqe.hpp"

namespace lamella::net::mlx5 {

enum class post_status : uint32_t {
  ok,
  timeout,     ///< no room in the ring until the deadline
  aborted,     ///< told to stop waiting for room
  ended,       ///< the same, because the link is over
  queue_error, ///< the adapter completed a work request with an error
  no_room,     ///< the message does not fit the arena; nothing was posted
};

/// How the adapter is told of new entries.
enum class doorbell : uint32_t {
  store, ///< record, then an 8-byte store to the register
  proxy, ///< only the count of entries is published; a CPU thread writes record and register
};

struct send_queue {
  wqe_block* ring;              ///< 2^k blocks, at most 32768
  uint32_t mask;                ///< blocks - 1
  uint32_t number;              ///< queue number, 24 bits
  uint32_t* record;             ///< the send half of the doorbell record: word 1 of 2
  uint64_t* blue_flame;         ///< two buffers side by side, used in turn
  uint32_t blue_flame_bytes;    ///< size of one buffer
  uint32_t half;                ///< which buffer comes next
  const uint32_t* completion;   ///< last word of the one completion that is overwritten in place
  uint64_t* published;          ///< doorbell::proxy, post_ring: blocks produced so far
  uint64_t produced, completed; ///< blocks, 64 bits wide
  uint64_t signalled;           ///< `produced` behind the last WQE that asked for a completion
  region local, remote;         ///< arenas of payload, each `arena_bytes` long
  uint64_t arena_bytes;
  region seqno; ///< the peer's word
};

/// Extends the adapter's 16-bit index to 64 bits, relative to what was completed before.
LAMELLA_MLX5 void note_completion(send_queue& q, uint32_t word_be) {
  const auto ahead =
      static_cast<uint16_t>(completion_index_of(word_be) + 1 - static_cast<uint16_t>(q.completed));
  if (q.completed + ahead <= q.produced) q.completed += ahead;
}

LAMELLA_MLX5 bool has_room(const send_queue& q, uint32_t blocks) {
  return q.produced + blocks - q.completed <= q.mask + uint64_t{1};
}

/// Makes room for `blocks` entries. Entries are free only when a completion says so. Completions
/// are read only when room is short: where they lie in host memory a GPU's read costs a round trip
/// over PCIe. Errors of a queue with room are seen by the host that watches the completion.
LAMELLA_MLX5_TEMPLATE
template <class P> LAMELLA_MLX5 post_status reserve(send_queue& q, uint32_t blocks, P& policy) {
  if (blocks > q.mask + uint64_t{1}) return post_status::no_room;
  while (!has_room(q, blocks)) {
    const uint32_t word = policy.load_completion(q.completion);
    const uint32_t op = completion_opcode_of(word);
    if (op == completion_done)
      note_completion(q, word);
    else if (op != completion_never)
      return post_status::queue_error;
    if (has_room(q, blocks)) break;
    if (const auto status = policy.over(); status != post_status::ok) return status;
  }
  return post_status::ok;
}

/// Whether the entry that ends at `end` must ask for a completion: one per half ring at least, or
/// the ring would fill with entries whose end is never told.
LAMELLA_MLX5 bool must_signal(const send_queue& q, uint64_t end, uint32_t blocks) {
  return end + blocks - q.signalled > (q.mask + uint64_t{1}) / 2;
}

LAMELLA_MLX5_TEMPLATE
template <class P> LAMELLA_MLX5 void put(send_queue& q, const wqe_block& block, P& policy) {
  policy.store_block(&q.ring[q.produced & q.mask], block);
  ++q.produced;
}

LAMELLA_MLX5 uint64_t* next_register(send_queue& q) {
  auto* at = q.blue_flame + (q.half ? q.blue_flame_bytes / sizeof(uint64_t) : 0);
  q.half ^= 1;
  return at;
}

LAMELLA_MLX5 bool fits(const send_queue& q, uint64_t offset, uint64_t bytes) {
  return bytes > 0 && bytes < inline_bit && bytes <= q.arena_bytes
         && offset <= q.arena_bytes - bytes;
}

/// Sends `bytes` at `from` of the local arena to `to` of the remote one, then the seqno. The
/// payload stays untouched until the seqno has been answered.
LAMELLA_MLX5_TEMPLATE
template <class P>
LAMELLA_MLX5 post_status post_message(send_queue& q, uint64_t from, uint64_t to, uint32_t bytes,
                                      uint64_t seqno, doorbell how, P& policy) {
  if (!fits(q, from, bytes) || !fits(q, to, bytes)) return post_status::no_room;
  if (const auto status = reserve(q, 2, policy); status != post_status::ok) return status;
  const bool signal = must_signal(q, q.produced + 2, 2);
  put(q,
      write_payload(q.produced, q.number, {q.remote.address + to, q.remote.key_be},
                    {q.local.address + from, q.local.key_be}, bytes, flag_none),
      policy);
  const auto last =
      write_seqno(q.produced, q.number, q.seqno, seqno, signal ? flag_completion : flag_none);
  put(q, last, policy);
  if (signal) q.signalled = q.produced;
  policy.release(); // entries, and the payload, before the record
  if (how == doorbell::proxy) {
    policy.store_doorbell(q.published, q.produced);
    return post_status::ok;
  }
  policy.store_record(q.record, record_value(q.produced));
  policy.release(); // record before the doorbell
  policy.store_doorbell(next_register(q), doorbell_value(last.s[0]));
  return post_status::ok;
}

/// The same as one WQE through the BlueFlame register. The seqno lands right behind the payload, so
/// `to + bytes` must be where the receiver polls, and `staged` is a local copy of the seqno,
/// already written. The ring entry and the record are written as well: the adapter may ignore the
/// push.
LAMELLA_MLX5_TEMPLATE
template <class P>
LAMELLA_MLX5 post_status post_pushed(send_queue& q, uint64_t from, uint64_t to, uint32_t bytes,
                                     region staged, P& policy) {
  if (!fits(q, from, bytes) || !fits(q, to, uint64_t{bytes} + 8)) return post_status::no_room;
  if ((to + bytes) % 8 != 0) return post_status::no_room; // a seqno is written whole where aligned
  if (const auto status = reserve(q, 1, policy); status != post_status::ok) return status;
  const bool signal = must_signal(q, q.produced + 1, 1);
  const auto block =
      write_with_trailer(q.produced, q.number, {q.remote.address + to, q.remote.key_be},
                         {q.local.address + from, q.local.key_be}, bytes, staged,
                         signal ? flag_completion : flag_none);
  put(q, block, policy);
  if (signal) q.signalled = q.produced;
  policy.release();
  policy.store_record(q.record, record_value(q.produced));
  policy.release();
  policy.push_block(next_register(q), block);
  return post_status::ok;
}

/// What a stream posts of a ring at once: the frame first, then the words. The last work request
/// asks for a completion, so that a host that watches knows when all of it has arrived, and
/// `published` tells how far the queue is, in either way to ring.
LAMELLA_MLX5_TEMPLATE
template <class P>
LAMELLA_MLX5 post_status post_ring(send_queue& q, const gpu::ring_post& x, doorbell how,
                                   P& policy) {
  const bool frame = x.bytes > 0, credit = x.released_at != 0;
  const uint32_t blocks = (frame ? 2 : 0) + (credit ? 1 : 0);
  if (frame && (!fits(q, x.from, x.bytes) || !fits(q, x.to, x.bytes))) return post_status::no_room;
  if (blocks == 0) return post_status::ok;
  if (const auto status = reserve(q, blocks, policy); status != post_status::ok) return status;
  wqe_block last{};
  const auto word = [&](uint64_t at, uint64_t value, bool signal) {
    last = write_seqno(q.produced, q.number, {q.remote.address + at, q.remote.key_be}, value,
                       signal ? flag_completion : flag_none);
    put(q, last, policy);
  };
  if (frame) {
    put(q,
        write_payload(q.produced, q.number, {q.remote.address + x.to, q.remote.key_be},
                      {q.local.address + x.from, q.local.key_be}, x.bytes, flag_none),
        policy);
    word(x.sent_at, x.sent, !credit);
  }
  if (credit) word(x.released_at, x.released, true);
  q.signalled = q.produced;
  policy.release(); // entries, and the frame, before whoever may ring for them, and the record
  policy.store_doorbell(q.published, q.produced);
  if (how == doorbell::proxy) return post_status::ok;
  policy.store_record(q.record, record_value(q.produced));
  policy.release(); // both before the doorbell: what has completed was published before
  policy.store_doorbell(next_register(q), doorbell_value(last.s[0]));
  return post_status::ok;
}

} // namespace lamella::net::mlx5
