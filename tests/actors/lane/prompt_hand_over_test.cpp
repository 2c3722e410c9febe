// A prefill worker with KV of its own whose pipeline is taken over: how far prompts are computed,
// and what the allocator learns of them.
#include "actors/protocol/batches.hpp"
#include "actors/protocol/prefills.hpp"
#include "tests/actors/lane/prompt_pulls_stage.hpp"

namespace lamella::actors::test {

namespace {

struct handing : world {
  std::shared_ptr<reply<bool>> stopped;

  explicit handing(options o = {}) : world{o} {}

  void hand_over_now() {
    stopped = ask<bool>(worker, hand_over{true});
    settle();
  }
  /// Prompts have been computed for as long as they may.
  void grace_ends() { advance(std::chrono::seconds{2}, std::chrono::milliseconds{100}); }
  void pull_all() {
    for (const auto number : under_way()) both(number);
  }
  /// As the allocator knows it last; 0: not at all.
  uint32_t filled(uint64_t n) const {
    uint32_t result = 0;
    for (const auto& x : slots->filled)
      if (x.holder == seq(n)) result = x.positions;
    return result;
  }
};

} // namespace

TEST_CASE("L-M03 a long prompt on own KV stops, and the pool's part of it is told") {
  handing w;
  const auto computed = w.offer(prompt_of(1, 40));
  w.hand_over_now();
  w.compute(1);
  REQUIRE(w.replica->waits_for(2)); // most prompts end before the grace
  w.both(1);
  w.both(2);
  w.grace_ends();
  w.compute(2);
  CHECK_FALSE(w.replica->waits_for(3));
  CHECK_FALSE(w.stopped->came); // shards still pull
  w.pull_all();
  CHECK(w.stopped->came);
  CHECK_FALSE(computed->came); // its request takes it on, from what is told here
  CHECK(w.filled(1) == 16);
}

TEST_CASE("L-M03 a prompt on own KV that ends within the grace is told before the lane answers") {
  handing w;
  const auto computed = w.offer(prompt_of(1, 20)), waiting = w.offer(prompt_of(2, 20));
  w.hand_over_now();
  for (uint64_t i = 1; i <= 3; ++i) w.compute(i);
  CHECK_FALSE(w.replica->waits_for(4)); // the other one has not begun
  w.pull_all();
  CHECK(computed->came);
  CHECK(w.filled(1) == 20);
  CHECK(w.stopped->came);
  CHECK_FALSE(waiting->came);
  CHECK(w.filled(2) == 0);
}

TEST_CASE("L-M03 a prompt on own KV with which nobody could go on is computed to its end") {
  options o;
  SUBCASE("prefixes are not cached") { o.caches_prefixes = false; }
  SUBCASE("rows without parity are not cached") { o.parity = true; }
  SUBCASE("its rows are pulled when it has ended") { o.serialize_below = 100; }
  handing w{o};
  const auto computed = w.offer(prompt_of(1, 40));
  w.hand_over_now();
  w.grace_ends();
  for (uint64_t i = 1; i <= 5; ++i) w.compute(i);
  w.pull_all();
  CHECK(computed->came);
  CHECK(w.filled(1) == 40);
  CHECK(w.stopped->came);
}

TEST_CASE("L-M03 of a stopped prompt whose rows did not reach the pool nothing is told") {
  handing w;
  w.offer(prompt_of(1, 40));
  w.hand_over_now();
  w.grace_ends();
  w.compute(1);
  REQUIRE(w.under_way() == numbers{1, 2});
  w.fail_pull(1);
  w.fail_offer(1);
  w.both(2);
  CHECK(w.stopped->came);
  CHECK_FALSE(w.replica->waits_for(2));
  CHECK(w.filled(1) == 0);
}

TEST_CASE("L-M03 an iteration that failed is run again before its lane hands over") {
  handing w;
  w.offer(prompt_of(1, 40));
  w.hand_over_now();
  w.grace_ends();
  w.replica->fail(1);
  w.settle();
  CHECK_FALSE(w.stopped->came);
  REQUIRE(w.replica->waits_for(1));
  w.compute(1);
  w.pull_all();
  CHECK(w.stopped->came);
  CHECK(w.filled(1) == 8);
}

} // namespace lamella::actors::test
