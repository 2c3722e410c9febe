/// Two ends of a connection over the software adapter, in ordinary memory.
#pragma once

#include "net/rdma/mlx5/host_stores.hpp"
#include "net/rdma/mlx5/software_hca.hpp"

#include <cstring>
#include <memory>
#include <vector>

namespace lamella::net::mlx5 {

/// One end: what poster and adapter share, an arena whose first half is sent from and whose second
/// half is received into, and the word the peer raises.
struct test_end {
  test_end(uint32_t blocks, size_t arena_bytes)
      : ring(blocks), arena(arena_bytes / sizeof(uint64_t)) {}

  std::vector<wqe_block> ring;
  alignas(64) uint32_t record[2] = {};
  alignas(64) uint64_t blue_flame[64] = {};
  alignas(64) unsigned char completion[completion_bytes] = {};
  alignas(64) uint64_t seqno = 0;
  uint64_t old_value = 0, published = 0;
  std::vector<uint64_t> arena;
  std::vector<uint64_t> staged;
  uint32_t arena_key = 0, words_key = 0, staged_key = 0;
  size_t place = 0; ///< of the queue in the adapter
  send_queue queue{};

  unsigned char* bytes() { return reinterpret_cast<unsigned char*>(arena.data()); }
  size_t size() const { return arena.size() * sizeof(uint64_t); }
  uint64_t seen() { return std::atomic_ref<uint64_t>{seqno}.load(std::memory_order_acquire); }
  static uint64_t address(const void* p) { return reinterpret_cast<uint64_t>(p); }
  uint8_t syndrome() const { return completion[syndrome_at]; }
  uint32_t completed_op() const { return completion[63] >> 4; }
};

struct test_pair {
  explicit test_pair(hca_faults faults = {}, uint32_t blocks = 32, size_t arena_bytes = 1 << 16)
      : hca{faults}, a{std::make_unique<test_end>(blocks, arena_bytes)},
        b{std::make_unique<test_end>(blocks, arena_bytes)} {
    for (auto* end : {a.get(), b.get()}) {
      end->staged.resize(blocks);
      end->arena_key =
          hca.register_memory(end->arena.data(), end->size(), remote_rights::write_and_atomic);
      end->words_key = hca.register_memory(&end->seqno, 16, remote_rights::write_and_atomic);
      end->staged_key =
          hca.register_memory(end->staged.data(), blocks * sizeof(uint64_t), remote_rights::none);
    }
    join(*a, *b, 0x11);
    join(*b, *a, 0xabcdef);
  }

  /// Lets the adapter do all there is to do.
  void drain() {
    while (hca.step()) {
    }
  }

  software_hca hca;
  std::unique_ptr<test_end> a, b;

private:
  void join(test_end& end, test_end& peer, uint32_t number) {
    auto& q = end.queue;
    q.ring = end.ring.data();
    q.mask = static_cast<uint32_t>(end.ring.size() - 1);
    q.number = number;
    q.record = &end.record[1];
    q.blue_flame = end.blue_flame;
    q.blue_flame_bytes = 256;
    q.completion = reinterpret_cast<const uint32_t*>(end.completion + completion_word_at);
    q.published = &end.published;
    q.local = {test_end::address(end.arena.data()), be32(end.arena_key)};
    q.remote = {test_end::address(peer.arena.data()), be32(peer.arena_key)};
    q.arena_bytes = end.size();
    q.seqno = {test_end::address(&peer.seqno), be32(peer.words_key)};
    end.place = hca.attach(q, end.completion);
  }
};

/// A deadline that no healthy test comes near.
inline host_stores patient() {
  return host_stores{host_stores::clock::now() + std::chrono::seconds{60}};
}

} // namespace lamella::net::mlx5
