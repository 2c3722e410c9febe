#include "net/rdma/mlx5/software_hca.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <thread>

namespace lamella::net::mlx5 {

namespace {

uint64_t wide(uint32_t high_be, uint32_t low_be) {
  return static_cast<uint64_t>(be32(high_be)) << 32 | be32(low_be);
}

/// A load that the other side may write at the same time.
template <class T> T load(const T* from) {
  return std::atomic_ref<T>{*const_cast<T*>(from)}.load(std::memory_order_acquire);
}

template <class T> void store(void* to, T value) {
  std::atomic_ref<T>{*static_cast<T*>(to)}.store(value, std::memory_order_release);
}

constexpr uint32_t blocks_of(uint32_t segments) { return (segments + 3) / 4; }

} // namespace

class software_hca::request {
public:
  uint32_t segments() const { return be32(s_[0].w[1]) & segments_max; }
  uint32_t queue_number() const { return be32(s_[0].w[1]) >> 8; }
  uint32_t op() const { return be32(s_[0].w[0]) & 0xff; }
  uint32_t op_modifier() const { return be32(s_[0].w[0]) >> 24; }
  uint16_t index() const { return static_cast<uint16_t>(be32(s_[0].w[0]) >> 8); }
  bool signalled() const { return (be32(s_[0].w[2]) & 0x0c) == flag_completion; }
  const segment& operator[](uint32_t i) const { return s_[i]; }

  /// Copies the blocks of the entry at `at`, which may run over the end of the ring.
  void read(const wqe_block* ring, uint32_t ring_blocks, uint64_t at, uint32_t blocks) {
    for (uint32_t i = 0; i < blocks; ++i)
      std::memcpy(&s_[size_t{4} * i], &ring[(at + i) % ring_blocks], block_bytes);
  }
  void read(const wqe_block& block) { std::memcpy(s_, &block, block_bytes); }

  /// Bytes from segment `i` on, for inline data that fills several segments.
  const unsigned char* bytes_at(uint32_t i) const {
    return reinterpret_cast<const unsigned char*>(&s_[i]);
  }

private:
  segment s_[64]; ///< 16 blocks: 63 segments, rounded up
};

uint32_t software_hca::register_memory(void* base, size_t bytes, remote_rights rights) {
  const std::lock_guard lock{mutex_};
  next_key_ += 0x107; // the low byte changes too, as it does with hardware keys
  memory_[next_key_] = {reinterpret_cast<uint64_t>(base), bytes, rights};
  return next_key_;
}

void software_hca::revoke(uint32_t key) {
  const std::lock_guard lock{mutex_};
  memory_.erase(key);
}

size_t software_hca::attach(const send_queue& q, unsigned char* completion) {
  std::memset(completion, 0xff, completion_bytes);
  auto added = std::make_unique<queue>();
  added->ring = q.ring;
  added->blocks = q.mask + 1;
  added->number = q.number;
  added->record = q.record;
  added->blue_flame = q.blue_flame;
  added->blue_flame_bytes = q.blue_flame_bytes;
  added->completion = completion;
  const std::lock_guard lock{mutex_};
  queues_.push_back(std::move(added));
  return queues_.size() - 1;
}

void software_hca::detach(size_t place) {
  const std::lock_guard lock{mutex_};
  queues_.at(place).reset();
}

software_hca::queue_report software_hca::report(size_t place) const {
  const std::lock_guard lock{mutex_};
  return queues_.at(place)->report;
}

bool software_hca::step() {
  const std::lock_guard lock{mutex_};
  bool any = false;
  for (auto& q : queues_)
    for (uint32_t half = 0; q && half < 2; ++half) {
      const auto* pushed = q->blue_flame + half * (q->blue_flame_bytes / sizeof(uint64_t));
      const auto value = load(pushed);
      if (value == q->seen[half]) continue;
      any = true;
      if (q->late[half]++ < faults_.late_passes) continue;
      q->late[half] = 0;
      q->seen[half] = value;
      ring(*q, value, pushed);
    }
  return any;
}

bool software_hca::fail(queue& q, uint8_t syndrome, const char* why) {
  if (!q.report.error) {
    q.report.error = true;
    q.report.first_syndrome = syndrome;
    q.report.why = why;
    complete(q, q.next, completion_error, syndrome);
  }
  return false;
}

void software_hca::complete(queue& q, uint64_t index, uint32_t opcode, uint8_t syndrome) {
  auto* at = q.completion;
  at[syndrome_at - 1] = 0;
  at[syndrome_at] = syndrome;
  const auto number = be32(q.number);
  std::memcpy(at + 56, &number, sizeof number);
  store(at + completion_word_at, be32((low(index) & 0xffff) << 16 | opcode << 4));
}

/// A doorbell says only "look": how far the ring is filled is told by the record.
void software_hca::ring(queue& q, uint64_t value, const uint64_t* pushed) {
  ++q.report.doorbells;
  const auto word0 = be32(low(value)), word1 = be32(high(value));
  if (word1 >> 8 != q.number) {
    fail(q, syndrome_operation, "doorbell for another queue");
    return;
  }
  const auto filled = static_cast<uint16_t>(be32(load(q.record)));
  auto left = static_cast<uint32_t>(static_cast<uint16_t>(filled - static_cast<uint16_t>(q.next)));
  if (left > q.blocks) {
    fail(q, syndrome_operation, "the doorbell record moved by more than the ring");
    return;
  }
  // The WQE a doorbell names is behind us (its work came with an earlier doorbell) or in front, but
  // never beyond what the record says.
  const auto behind = static_cast<uint16_t>(static_cast<uint16_t>(q.next + left)
                                            - static_cast<uint16_t>(word0 >> 8));
  if (behind == 0 || behind > q.blocks + left) {
    fail(q, syndrome_operation, "doorbell before its doorbell record");
    return;
  }
  request wqe;
  while (left > 0) {
    if (!take_push(q, value, left == 1 ? pushed : nullptr, wqe)) {
      wqe.read(q.ring, q.blocks, q.next, 1);
      const auto blocks = blocks_of(wqe.segments());
      if (blocks > 1 && blocks <= left) wqe.read(q.ring, q.blocks, q.next, blocks);
    }
    const auto blocks = std::max(1u, blocks_of(wqe.segments()));
    if (q.report.error) { // the rest is flushed, unexecuted
      complete(q, q.next, completion_error, syndrome_flushed);
      ++q.report.flushed;
    } else if (blocks > left) {
      fail(q, syndrome_operation, "entry longer than what was posted");
    } else if (run(q, wqe)) {
      if (wqe.signalled()) complete(q, q.next, completion_done, syndrome_none);
      ++q.report.executed;
    }
    q.next += std::min(blocks, left);
    left -= std::min(blocks, left);
  }
}

/// Takes the one new entry from the register, if it is there whole. The ring is the truth: a push
/// that differs from it was torn, or is of an older entry.
bool software_hca::take_push(queue& q, uint64_t value, const uint64_t* pushed, request& out) {
  const auto word0 = be32(low(value)), word1 = be32(high(value));
  const auto segments = word1 & segments_max;
  if (pushed == nullptr || segments < 2 || segments > 4) return false;
  if (static_cast<uint16_t>(word0 >> 8) != static_cast<uint16_t>(q.next)) return false;
  uint64_t words[block_bytes / sizeof(uint64_t)];
  for (uint32_t i = 0; i < std::size(words); ++i) words[i] = load(pushed + i);
  const auto turn = q.report.pushes_taken + q.report.pushes_ignored + 1;
  const bool missed = faults_.miss_push_every && turn % faults_.miss_push_every == 0;
  const bool torn = faults_.tear_push_every && turn % faults_.tear_push_every == 0;
  if (missed || torn || words[0] != value
      || std::memcmp(words, &q.ring[q.next % q.blocks], size_t{segments} * segment_bytes) != 0) {
    ++q.report.pushes_ignored;
    return false;
  }
  ++q.report.pushes_taken;
  wqe_block block;
  std::memcpy(&block, words, sizeof block);
  out.read(block);
  return true;
}

const software_hca::memory* software_hca::find(uint32_t key_be, uint64_t address,
                                               uint64_t bytes) const {
  const auto at = memory_.find(be32(key_be));
  if (at == memory_.end()) return nullptr;
  const auto& m = at->second;
  const bool inside = address >= m.base && bytes <= m.bytes && address - m.base <= m.bytes - bytes;
  return inside ? &m : nullptr;
}

bool software_hca::run(queue& q, const request& wqe) {
  if (wqe.index() != static_cast<uint16_t>(q.next))
    return fail(q, syndrome_operation, "index of the entry is not its place in the ring");
  if (wqe.queue_number() != q.number) return fail(q, syndrome_operation, "entry of another queue");
  if (wqe.segments() == 0) return fail(q, syndrome_operation, "entry without segments");
  if (q.report.executed >= faults_.fail_after) return fail(q, faults_.fail_syndrome, "injected");
  if (wqe.op_modifier() != 0) return fail(q, syndrome_operation, "operation modifier");
  switch (wqe.op()) {
  case op_nop:
    return true;
  case op_rdma_write:
    return run_write(q, wqe);
  case op_fetch_add:
    return run_fetch_add(q, wqe);
  case op_send:
  case op_rdma_write_imm: // both consume a receive, and the peers of these channels post none
    return fail(q, syndrome_receiver_not_ready, "the peer has posted no receive");
  default:
    return fail(q, syndrome_operation, "operation not known");
  }
}

bool software_hca::run_write(queue& q, const request& wqe) {
  const auto segments = wqe.segments();
  if (segments < 2) return fail(q, syndrome_operation, "too few segments");
  uint64_t to = wide(wqe[1].w[0], wqe[1].w[1]);
  const auto key_be = wqe[1].w[2];
  for (uint32_t s = 2; s < segments;) {
    const auto word = be32(wqe[s].w[0]);
    const uint32_t bytes = word & ~inline_bit;
    const void* from;
    if (word & inline_bit) {
      const auto room = (segments - s) * segment_bytes - sizeof(uint32_t);
      if (bytes > room) return fail(q, syndrome_length, "inline data longer than its entry");
      from = wqe.bytes_at(s) + sizeof(uint32_t);
      s += (bytes + sizeof(uint32_t) + segment_bytes - 1) / segment_bytes;
    } else {
      const auto address = wide(wqe[s].w[2], wqe[s].w[3]);
      if (bytes == 0) return fail(q, syndrome_length, "a length of 0 means 2 GiB");
      if (!find(wqe[s].w[1], address, bytes))
        return fail(q, syndrome_local_protection, "local memory is not registered");
      from = reinterpret_cast<const void*>(address);
      ++s;
    }
    const auto* target = find(key_be, to, bytes);
    if (!target || target->rights == remote_rights::none)
      return fail(q, syndrome_remote_access, "remote memory is not registered for writing");
    copy(to, from, bytes);
    to += bytes;
  }
  return true;
}

bool software_hca::run_fetch_add(queue& q, const request& wqe) {
  if (wqe.segments() != 4) return fail(q, syndrome_operation, "an atomic has four segments");
  const auto to = wide(wqe[1].w[0], wqe[1].w[1]);
  const auto old_to = wide(wqe[3].w[2], wqe[3].w[3]);
  const auto* target = find(wqe[1].w[2], to, sizeof(uint64_t));
  if (!target || target->rights != remote_rights::write_and_atomic || to % sizeof(uint64_t) != 0)
    return fail(q, syndrome_remote_access, "remote word is not registered for atomics");
  if (be32(wqe[3].w[0]) != sizeof(uint64_t))
    return fail(q, syndrome_length, "an atomic returns eight bytes");
  if (!find(wqe[3].w[1], old_to, sizeof(uint64_t)))
    return fail(q, syndrome_local_protection, "local memory is not registered");
  const auto old = std::atomic_ref<uint64_t>{*reinterpret_cast<uint64_t*>(to)}.fetch_add(
      wide(wqe[2].w[0], wqe[2].w[1]), std::memory_order_acq_rel);
  std::memcpy(reinterpret_cast<void*>(old_to), &old, sizeof old);
  return true;
}

/// An aligned word is written whole and behind all bytes before it; a seqno is such a word. When it
/// is the tail of a gathered write it is a segment of its own.
void software_hca::copy(uint64_t to, const void* from, uint64_t bytes) const {
  if (bytes == sizeof(uint64_t) && to % sizeof(uint64_t) == 0) {
    uint64_t value;
    std::memcpy(&value, from, sizeof value);
    store(reinterpret_cast<void*>(to), value);
    return;
  }
  const uint64_t chunk = faults_.write_chunk ? faults_.write_chunk : bytes;
  for (uint64_t at = 0; at < bytes; at += chunk) {
    std::memmove(reinterpret_cast<char*>(to) + at, static_cast<const char*>(from) + at,
                 std::min(chunk, bytes - at));
    if (faults_.write_chunk) std::this_thread::yield();
  }
}

} // namespace lamella::net::mlx5
