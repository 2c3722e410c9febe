// Work requests, records and doorbells of a poster that has lost its mind. Whatever they are, the
// adapter stays inside the memory that was registered for it, ends, and leaves other queues alone.
#include "tests/net/rdma/mlx5/support.hpp"
#include "tests/random.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <initializer_list>

using namespace lamella::net::mlx5;

namespace {

constexpr uint64_t canary = 0xc0ffee00c0ffee00;

/// A region in the middle of memory that nobody may touch.
struct fenced {
  static constexpr size_t words = 64, margin = 64;
  std::vector<uint64_t> all = std::vector<uint64_t>(words + 2 * margin, canary);
  uint64_t* inside() { return all.data() + margin; }
  bool margins_whole() const {
    const auto whole = [](uint64_t word) { return word == canary; };
    return std::all_of(all.begin(), all.begin() + margin, whole)
           && std::all_of(all.end() - margin, all.end(), whole);
  }
};

struct fuzzer {
  explicit fuzzer(uint64_t seed) : random{seed} {
    writable_key = p.hca.register_memory(writable.inside(), fenced::words * 8,
                                         remote_rights::write_and_atomic);
    readable_key = p.hca.register_memory(readable.inside(), fenced::words * 8, remote_rights::none);
  }

  /// Mostly right, or a little off; sometimes the other region, its key, or anywhere.
  region place(bool remote) {
    const bool mixed = random.below(8) == 0;
    auto& memory = remote != mixed ? writable : readable;
    const auto key = remote != (random.below(16) == 0) ? writable_key : readable_key;
    const auto address = test_end::address(memory.inside()) + 8 * random.below(fenced::words);
    switch (random.below(16)) {
    case 0:
      return {address + random.below(24) - 16, be32(key)};
    case 1:
      return {random.next(), be32(key)};
    case 2:
      return {address, static_cast<uint32_t>(random.next())};
    default:
      return {address, be32(key)};
    }
  }

  wqe_block block() {
    auto& q = p.a->queue;
    const auto flags =
        static_cast<uint32_t>(random.below(4) ? uint64_t{flag_completion} : random.next());
    wqe_block b;
    switch (random.below(5)) {
    case 0:
      b = write_payload(q.produced, q.number, place(true), place(false),
                        static_cast<uint32_t>(random.below(80)), flags);
      break;
    case 1:
      b = write_seqno(q.produced, q.number, place(true), random.next(), flags);
      break;
    case 2:
      b = fetch_add(q.produced, q.number, place(true), random.next(), place(false), flags);
      break;
    case 3:
      b = write_with_trailer(q.produced, q.number, place(true), place(false),
                             static_cast<uint32_t>(random.below(600)), place(false), flags);
      break;
    default:
      for (auto& s : b.s)
        for (auto& w : s.w) w = static_cast<uint32_t>(random.next());
      b.s[0] = control_segment(random.below(2) ? op_rdma_write : op_fetch_add, q.produced, q.number,
                               static_cast<uint32_t>(random.below(9)), flags);
    }
    if (random.below(4) == 0) { // a few bits anywhere
      auto* bytes = reinterpret_cast<unsigned char*>(&b);
      for (auto flips = random.below(4); flips > 0; --flips)
        bytes[random.below(block_bytes)] ^= static_cast<unsigned char>(1u << random.below(8));
    }
    return b;
  }

  void post() {
    auto& q = p.a->queue;
    auto stores = patient();
    wqe_block last{};
    for (auto n = random.below(4) + 1; n > 0; --n) put(q, last = block(), stores);
    const auto lie = random.below(32) == 0 ? random.below(1 << 16) : 0;
    stores.store_record(q.record, record_value(q.produced + lie));
    auto* at = next_register(q);
    switch (random.below(8)) {
    case 0:
      stores.store_doorbell(at, random.next());
      break;
    case 1:
      stores.push_block(at, last);
      break;
    default:
      stores.store_doorbell(at, doorbell_value(last.s[0]));
    }
  }

  lamella::tests::splitmix random;
  test_pair p{{}, 16, 1024};
  fenced writable, readable;
  uint32_t writable_key = 0, readable_key = 0;
};

} // namespace

TEST_CASE("mlx5: no work request makes the adapter leave its memory") {
  uint64_t executed = 0, errors = 0, changed = 0;
  for (uint64_t seed = 1; seed <= 20000; ++seed) {
    CAPTURE(seed);
    fuzzer f{seed};
    for (int i = 0; i < 4; ++i) {
      f.post();
      int passes = 0;
      while (f.p.hca.step()) REQUIRE(++passes < 1000);
    }
    CHECK(f.writable.margins_whole());
    CHECK(f.readable.margins_whole());
    const auto report = f.p.hca.report(f.p.a->place);
    executed += report.executed;
    errors += report.error;
    changed += std::any_of(f.writable.all.begin(), f.writable.all.end(),
                           [](uint64_t word) { return word != canary; });
    // The other queue has seen nothing of it.
    auto stores = patient();
    REQUIRE(post_message(f.p.b->queue, 0, 512, 64, 1, doorbell::store, stores) == post_status::ok);
    f.p.drain();
    CHECK(f.p.a->seqno == 1);
  }
  // Both the ways in and the ways out were taken.
  CHECK(executed > 5000);
  CHECK(errors > 10000);
  CHECK(changed > 2500);
}
