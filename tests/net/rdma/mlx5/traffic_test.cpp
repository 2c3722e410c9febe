// Whole messages through the software adapter: two posting threads and the adapter's own, with the
// troubles that hardware makes. Every byte of every message is compared.
#include "tests/net/rdma/mlx5/support.hpp"

#include <doctest/doctest.h>

#include <thread>

using namespace lamella::net::mlx5;

namespace {

enum class way { doorbell, push };

struct traffic {
  test_pair pair;
  way how;
  uint64_t rounds;
  uint32_t bytes; ///< a multiple of 8
  bool good[2] = {true, true};

  static unsigned char byte_of(uint64_t round, uint32_t place, bool first) {
    return static_cast<unsigned char>(round * 7 + place * 13 + first);
  }

  uint32_t received_at() const { return static_cast<uint32_t>(pair.a->size() / 2); }

  bool wait(test_end& end, uint64_t wanted) const {
    auto& word = how == way::push
                     ? *reinterpret_cast<uint64_t*>(end.bytes() + received_at() + bytes)
                     : end.seqno;
    auto stores = patient();
    while (std::atomic_ref<uint64_t>{word}.load(std::memory_order_acquire) < wanted)
      if (stores.over() != post_status::ok) return false;
    return true;
  }

  bool send(test_end& end, uint64_t round, bool first) const {
    for (uint32_t i = 0; i < bytes; ++i) end.bytes()[i] = byte_of(round, i, first);
    auto stores = patient();
    auto& q = end.queue;
    if (how == way::doorbell)
      return post_message(q, 0, received_at(), bytes, round, doorbell::store, stores)
             == post_status::ok;
    if (reserve(q, 1, stores) != post_status::ok) return false;
    auto& staged = end.staged[q.produced & q.mask];
    staged = round;
    return post_pushed(q, 0, received_at(), bytes,
                       {test_end::address(&staged), be32(end.staged_key)}, stores)
           == post_status::ok;
  }

  bool right(test_end& end, uint64_t round, bool first) const {
    for (uint32_t i = 0; i < bytes; ++i)
      if (end.bytes()[received_at() + i] != byte_of(round, i, first)) return false;
    return true;
  }

  void side(bool first) {
    auto& end = first ? *pair.a : *pair.b;
    auto& ok = good[first];
    for (uint64_t round = 1; ok && round <= rounds; ++round) {
      if (first) ok = send(end, round, true);
      ok = ok && wait(end, round) && right(end, round, !first);
      if (ok && !first) ok = send(end, round, false);
    }
  }

  void run() {
    std::atomic<bool> stop{false};
    std::thread adapter{[&] {
      while (!stop)
        if (!pair.hca.step()) std::this_thread::yield();
    }};
    std::thread peer{[&] { side(false); }};
    side(true);
    peer.join();
    stop = true;
    adapter.join();
    for (auto* end : {pair.a.get(), pair.b.get()}) {
      const auto report = pair.hca.report(end->place);
      INFO(report.why);
      CHECK_FALSE(report.error);
    }
    CHECK(good[0]);
    CHECK(good[1]);
  }
};

} // namespace

TEST_CASE("mlx5: L-M10 messages arrive whole while the 16-bit index wraps") {
  // Two blocks per message: 34000 rounds pass 65536.
  traffic t{test_pair{{}, 32}, way::doorbell, 34000, 64};
  t.run();
  CHECK(t.pair.a->queue.produced == 68000);
  CHECK(t.pair.hca.report(t.pair.a->place).executed == 68000);
}

TEST_CASE("mlx5: L-M11 pushed messages arrive whole, whatever the adapter ignores") {
  hca_faults faults;
  SUBCASE("all pushes are taken") {}
  SUBCASE("every third push is missed") { faults.miss_push_every = 3; }
  SUBCASE("every second push is torn") { faults.tear_push_every = 2; }
  SUBCASE("both") {
    faults.miss_push_every = 3;
    faults.tear_push_every = 2;
  }
  traffic t{test_pair{faults}, way::push, 3000, 4096};
  t.run();
  const auto report = t.pair.hca.report(t.pair.a->place);
  CHECK(report.pushes_taken > 0);
  if (faults.miss_push_every || faults.tear_push_every) CHECK(report.pushes_ignored >= 1000);
}

TEST_CASE("mlx5: L-M09 payload that is written piece by piece is whole when the seqno is seen") {
  traffic t{test_pair{{.write_chunk = 256}}, way::doorbell, 500, 16384};
  t.run();
}

TEST_CASE("mlx5: L-M10 doorbells that are seen late coalesce and lose nothing") {
  traffic t{test_pair{{.late_passes = 50}}, way::doorbell, 1000, 512};
  t.run();
}

TEST_CASE("mlx5: a ring of two blocks still moves") {
  traffic t{test_pair{{}, 2}, way::doorbell, 2000, 64};
  t.run();
}
