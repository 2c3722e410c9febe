// What a prefill worker with KV of its own does when a pull or an iteration fails, is late, or has
// nobody to answer it. Devices are stand-ins.
#include "actors/protocol/prefills.hpp"
#include "actors/protocol/pulls.hpp"
#include "tests/actors/lane/prompt_pulls_stage.hpp"

namespace lamella::actors::test {

TEST_CASE("A pull that fails ends its other side, and its prompt runs again when all have ended") {
  world w;
  const auto why = w.end_of(w.worker);
  const auto answer = w.offer(prompt_of(1, 6));
  uint64_t failed = 2;
  SUBCASE("twice") {}
  SUBCASE("F3 more often than it may: the worker ends, its prompts ask the next pipeline") {
    failed = attempts_max;
  }
  for (uint64_t run = 0; run < failed; ++run) {
    CAPTURE(run);
    CHECK_FALSE(*why);
    REQUIRE(w.replica->launches.size() == run + 1);
    w.compute(run + 1);
    const auto first = 2 * run + 1, second = first + 1;
    REQUIRE(w.under_way() == numbers{first, second});
    w.fail_offer(first, ec::device_lost);
    CHECK(w.source->cancels == run + 1);
    for (const auto& shard : w.shards) CHECK(shard->cancels == run + 1);
    CHECK(w.replica->launches.size() == run + 1); // somebody may still write there
    w.fail_pull(first);
    w.fail_pull(second);
    CHECK_FALSE(answer->came);
    w.fail_offer(second);
    CHECK(w.source->cancels == run + 1); // what was cancelled is not cancelled again
  }
  if (failed == attempts_max) {
    CHECK(*why == ec::attempts_spent);
    CHECK_FALSE(answer->came);
    return;
  }
  w.compute(3);
  w.both(5);
  w.both(6);
  REQUIRE(answer->came);
  CHECK_FALSE(answer->error);
  // Nothing is left of it: every slot is free.
  const auto next = w.offer(prompt_of(2, 64));
  for (uint64_t i = 4; i < 12; ++i) w.compute(i);
  for (uint64_t number = 7; number < 7 + 16; ++number) w.both(number);
  CHECK(next->came);
  CHECK_FALSE(next->error);
}

TEST_CASE(
    "reliability A1: a pull whose frames are lost is given up soon, and its prompt runs again") {
  using namespace std::chrono_literals;
  world w;
  const auto answer = w.offer(prompt_of(1, 6));
  w.compute(1);
  w.both(2);
  w.offered(1); // its shard waits for a frame
  w.advance(1900ms, 100ms);
  CHECK(w.source->cancels == 0);
  w.advance(200ms, 100ms);
  CHECK(w.source->cancels == 1);
  for (const auto& shard : w.shards) CHECK(shard->cancels == 1);
  w.fail_pull(1);
  REQUIRE(w.replica->launches.size() == 2);
  w.compute(2);
  w.advance(2100ms, 100ms);
  CHECK(w.source->cancels == 1); // the next one has twice the time
  w.both(3);
  w.both(4);
  REQUIRE(answer->came);
  CHECK_FALSE(answer->error);
  w.advance(10s, 1s);
  CHECK(w.source->cancels == 1); // one that is over is not given up
}

TEST_CASE("reliability A1: a layered pull has its time from when its iteration has ended") {
  using namespace std::chrono_literals;
  world w;
  const auto answer = w.offer(prompt_of(1, 12));
  w.advance(10s, 1s);
  CHECK(w.source->cancels == 0); // the rows are being written
  w.compute(1);
  w.both(1);
  w.offered(2);
  w.advance(2100ms, 100ms);
  CHECK(w.source->cancels == 1);
  w.fail_pull(2);
  for (const uint64_t number : {3, 4}) {
    w.fail_offer(number);
    w.fail_pull(number);
  }
  w.compute(2); // what ran meanwhile
  w.compute(3);
  w.compute(4);
  for (uint64_t number = 5; number <= 8; ++number) w.both(number);
  CHECK(answer->came);
}

TEST_CASE("Silence ends the worker after three runs, so that the links are made anew") {
  world w;
  const auto answer = w.offer(prompt_of(1, 6));
  bool ended = false;
  w.spawn([&](caf::event_based_actor* self) -> caf::behavior {
    self->monitor(w.worker);
    self->set_down_handler(
        [&](const caf::down_msg& x) { ended = x.reason == ec::attempts_silent; });
    return {[](caf::ok_atom) {}};
  });
  w.settle();
  for (uint64_t run = 0; run < 3; ++run) {
    CHECK_FALSE(ended);
    w.compute(run + 1);
    w.fail_offer(2 * run + 1, ec::deadline);
    w.fail_pull(2 * run + 1);
    w.both(2 * run + 2);
  }
  CHECK(ended);
  CHECK_FALSE(answer->came); // the request asks the next pipeline
}

TEST_CASE("A layered pull that fails lets its iteration end before the prompt runs again") {
  world w;
  const auto answer = w.offer(prompt_of(1, 12));
  w.compute(1);
  REQUIRE(w.replica->waits_for(2));
  w.fail_pull(1);
  for (const uint64_t number : {1, 2, 3, 4}) w.fail_offer(number);
  for (const uint64_t number : {2, 3, 4}) w.fail_pull(number);
  CHECK(w.replica->launches.size() == 2);
  w.compute(2); // it drew a token that nobody hears of
  REQUIRE(w.replica->waits_for(3));
  CHECK(w.replica->launch_of(3).spans.at(0).position == 0);
  w.compute(3);
  w.compute(4);
  for (uint64_t number = 5; number <= 8; ++number) w.both(number);
  REQUIRE(answer->came);
  CHECK(answer->value.tokens.at(0).token == token_for(1, 0, 0));
}

TEST_CASE(
    "A prompt that is cancelled while it is pulled is answered when nobody writes its slots") {
  world w;
  const auto pulling = w.offer(prompt_of(1, 6));
  w.compute(1);
  caf::anon_send(w.worker, prefill_cancel{seq(1)});
  w.settle();
  w.both(1);
  w.pulled(2);
  CHECK_FALSE(pulling->came);
  w.offered(2);
  CHECK(pulling->error == ec::cancelled);
  CHECK(w.replica->launches.size() == 1);
  // One that waits for slots goes at once.
  options o;
  o.slots = 8;
  world full{o};
  full.offer(prompt_of(1, 8));
  const auto waiting = full.offer(prompt_of(2, 8));
  caf::anon_send(full.worker, prefill_cancel{seq(2)});
  full.settle();
  CHECK(waiting->error == ec::cancelled);
  full.compute(1);
  CHECK(full.replica->launches.size() == 1);
}

TEST_CASE("F3 an iteration whose attempts are spent fails none of the prompts it was of") {
  world w;
  const auto why = w.end_of(w.worker);
  const auto hopeless = w.offer(prompt_of(1, 12));
  for (uint32_t i = 0; i < attempts_max; ++i) {
    CHECK_FALSE(*why);
    w.replica->fail(1);
    w.settle();
  }
  CHECK(*why == ec::attempts_spent);
  CHECK_FALSE(hopeless->came);
}

TEST_CASE(
    "A cut link begins nothing and fails nobody: the pipeline is rebuilt, or the worker ends") {
  world w;
  const auto answer = w.offer(prompt_of(1, 6));
  w.compute(1);
  bool ended = false;
  w.spawn([&](caf::event_based_actor* self) -> caf::behavior {
    self->monitor(w.worker);
    self->set_down_handler([&](const caf::down_msg& x) { ended = x.reason == ec::link_cut; });
    return {[](caf::ok_atom) {}};
  });
  w.settle();
  w.fail_pull(1, ec::link_cut);
  w.fail_offer(1, ec::link_cut);
  w.fail_offer(2);
  w.fail_pull(2);
  CHECK_FALSE(answer->came);
  CHECK(w.replica->launches.size() == 1);
  CHECK_FALSE(ended);
  w.advance(cut_timeout + std::chrono::seconds{1}, std::chrono::milliseconds{100});
  CHECK(ended);
}

TEST_CASE("Any order of answers and failures ends every prompt once, with its own tokens") {
  for (uint64_t seed = 1; seed <= 80; ++seed) {
    CAPTURE(seed);
    tests::splitmix random{seed};
    options o;
    o.chunk = static_cast<uint32_t>(1 + random.below(20));
    o.slots = static_cast<uint32_t>(40 + random.below(60));
    o.serialize_below = static_cast<uint32_t>(random.below(40));
    o.whole_requests = random.below(2) == 1;
    world w{o};
    w.replica->at_once = true;
    w.replica->random = tests::splitmix{seed + 1000};
    w.replica->fail_per_mille = 10;
    std::vector<std::shared_ptr<reply<prefilled>>> answers;
    std::set<uint64_t> cancelled;
    uint32_t failures = 0;
    const auto some_pull = [&] { // one answer of one side of one pull
      std::vector<std::pair<bool, uint64_t>> owed;
      for (const auto& [number, x] : w.source->offering) owed.emplace_back(true, number);
      for (const auto& shard : w.shards)
        for (const auto& [number, x] : shard->pulling) owed.emplace_back(false, number);
      if (owed.empty()) return false;
      const auto [offers, number] = owed[random.below(owed.size())];
      // A prompt that fails as often as it may ends the worker.
      const bool fails = failures + 1 < attempts_max && random.below(60) == 0;
      failures += fails ? 1 : 0;
      auto& from = offers ? w.source->offering : w.puller(number).pulling;
      auto due = std::move(from.extract(number).mapped());
      if (fails)
        due.deliver(caf::make_error(ec::device_lost));
      else
        due.deliver(kv_moved{number, 5, 100});
      return true;
    };
    for (uint64_t r = 1; r <= 12; ++r) {
      answers.push_back(w.ask<prefilled>(
          w.worker, prompt_of(r, static_cast<uint32_t>(1 + random.below(40)), 1, r % 2)));
      for (auto n = random.below(20); n > 0; --n) {
        if (w.sched.has_job()) w.step(random);
        if (random.below(3) == 0) some_pull();
      }
      if (random.below(5) == 0) {
        cancelled.insert(r);
        caf::anon_send(w.worker, prefill_cancel{seq(r)});
      }
    }
    do w.settle(random);
    while (some_pull());
    for (uint64_t r = 1; r <= 12; ++r) {
      CAPTURE(r);
      const auto& x = *answers[r - 1];
      REQUIRE(x.came);
      if (x.error)
        CHECK((x.error == ec::cancelled && cancelled.contains(r)));
      else
        CHECK(x.value.tokens.at(0).token == token_for(r, 0, 0));
    }
    // No slot is lost: a prompt that needs all of them runs.
    const auto all = w.ask<prefilled>(w.worker, prompt_of(99, o.slots));
    w.replica->fail_per_mille = 0;
    do w.settle(random);
    while (some_pull());
    REQUIRE(all->came);
  }
}

} // namespace lamella::actors::test
