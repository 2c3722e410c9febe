// Completions of an mlx5 adapter in a ring, as the host takes them for posters.
#include "net/rdma/mlx5/completion_ring.hpp"
#include "net/rdma/mlx5/send_queue.hpp"

#include <doctest/doctest.h>

#include <vector>

using namespace lamella::net::mlx5;

namespace {

/// An adapter that writes completions of entries 0, 1, 2 …
struct adapter {
  explicit adapter(uint32_t entry_bytes)
      : memory(size_t{count} * entry_bytes, std::byte{0xff}),
        newest(completion_bytes, std::byte{0xff}) {
    ring = {memory.data(), count, entry_bytes, &record, newest.data()};
  }
  void complete(uint32_t opcode, uint8_t syndrome = 0) {
    auto* entry = memory.data() + size_t{written % count} * ring.entry_bytes + ring.entry_bytes
                  - completion_bytes;
    entry[syndrome_at] = std::byte{syndrome};
    const uint32_t owner = written / count % 2;
    const auto word = be32((written & 0xffff) << 16 | opcode << 4 | owner);
    std::memcpy(entry + completion_word_at, &word, sizeof word);
    ++written;
  }
  uint32_t word() const {
    uint32_t x = 0;
    std::memcpy(&x, newest.data() + completion_word_at, sizeof x);
    return x;
  }

  static constexpr uint32_t count = 8;
  std::vector<std::byte> memory, newest;
  uint32_t record = 0, written = 0;
  completion_ring ring;
};

} // namespace

TEST_CASE("mlx5: completions are taken once each, round after round, and the adapter is told") {
  for (const uint32_t entry_bytes : {64u, 128u}) {
    CAPTURE(entry_bytes);
    adapter x{entry_bytes};
    x.ring.take();
    CHECK(completion_opcode_of(x.word()) == completion_never);
    CHECK(x.record == 0);
    // Bursts of 0 … 8, so that every place of the ring is the last one taken in both kinds of
    // round.
    for (uint32_t burst = 0, total = 0; total < 1'000; burst = (burst + 1) % (adapter::count + 1)) {
      for (uint32_t i = 0; i < burst; ++i) x.complete(completion_done);
      total += burst;
      x.ring.take();
      CHECK(x.ring.taken == total);
      CHECK(be32(x.record) == total);
      if (total == 0) continue;
      CHECK(completion_opcode_of(x.word()) == completion_done);
      CHECK(completion_index_of(x.word()) == static_cast<uint16_t>(total - 1));
    }
  }
}

TEST_CASE("mlx5: the first completion with an error stays, whatever is flushed behind it") {
  adapter x{64};
  x.complete(completion_done);
  x.complete(completion_error, syndrome_retry_exceeded);
  x.complete(completion_error, syndrome_flushed);
  for (int i = 0; i < 3; ++i) {
    x.ring.take();
    CHECK(x.ring.taken == 1);
    CHECK(completion_opcode_of(x.word()) == completion_error);
    CHECK(x.newest[syndrome_at] == std::byte{syndrome_retry_exceeded});
  }
}
