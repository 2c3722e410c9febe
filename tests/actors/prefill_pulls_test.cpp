// A prefill worker with KV of its own: what it has the shards pull, when, and what it does when a
// pull fails. Devices are stand-ins; those with real ones are in tests/actors/pull_test.cpp.
#include "tests/actors/prefill_pulls_stage.hpp"

namespace lamella::actors::test {

TEST_CASE("S-M13 a short prompt is pulled when it is computed, and told when all shards have it") {
  world w;
  const auto answer = w.offer(world::prompt(1, 6));
  CHECK(w.own->launches == 1);
  CHECK(w.source->offered.empty());
  w.compute(1);
  REQUIRE(w.under_way() == numbers{1, 2}); // one per shard
  for (const auto& x : w.source->offered) {
    CHECK(x.iteration == 0);
    CHECK(scheduler::length_of(x.runs) == 6);
  }
  for (uint32_t s = 0; s < 2; ++s) {
    REQUIRE(w.shards[s]->pulled.size() == 1);
    CHECK(w.shards[s]->pulled[0].runs == runs{{1000, 6}});
    CHECK(w.source->offered[s].number == w.shards[s]->pulled[0].number);
    CHECK(w.source->offered[s].shard == s);
  }
  w.both(2);
  w.pulled(1);
  CHECK_FALSE(answer->came);
  w.offered(1);
  REQUIRE(answer->came);
  CHECK(answer->value.tokens.at(0).token == token_for(1, 0, 0));
}

TEST_CASE("S-M14 S-M15 chunks of a long prompt are pulled with the iterations that compute them") {
  world w;
  const auto answer = w.offer(world::prompt(1, 20));
  for (uint64_t i = 1; i <= 3; ++i) {
    CAPTURE(i);
    REQUIRE(w.source->offered.size() == 2 * i); // before the iteration has answered
    const auto& x = w.source->offered.back();
    const uint32_t rows = i < 3 ? 8 : 4;
    CHECK(x.iteration == i);
    CHECK(scheduler::length_of(x.runs) == rows);
    CHECK(w.shards[1]->pulled.back().runs
          == runs{{1000 + 8 * (static_cast<uint32_t>(i) - 1), rows}});
    CHECK(w.replica->launch_of(i).fences == numbers{0, 0});
    w.compute(i);
  }
  CHECK(w.source->offered.size() == 6);
  CHECK_FALSE(answer->came);
  for (uint64_t number = 1; number <= 6; ++number) w.both(number);
  CHECK(answer->came);
}

TEST_CASE("S-M17 prompts of one iteration share a pull; whole requests go to their own shard") {
  world together;
  together.offer(world::prompt(1, 1)); // the others wait for it
  const auto a = together.offer(world::prompt(2, 3)), b = together.offer(world::prompt(3, 4));
  together.compute(1);
  together.both(1);
  together.both(2);
  together.compute(2);
  REQUIRE(together.under_way() == numbers{3, 4});
  CHECK(together.shards[0]->pulled.back().runs == runs{{2000, 3}, {3000, 4}});
  together.both(3);
  CHECK_FALSE(a->came);
  together.both(4);
  CHECK(a->came);
  CHECK(b->came);

  options o;
  o.whole_requests = true;
  world apart{o};
  apart.offer(world::prompt(1, 1));
  const auto c = apart.offer(world::prompt(2, 3, 1)), d = apart.offer(world::prompt(3, 4, 0));
  apart.compute(1);
  apart.both(1);
  apart.compute(2);
  REQUIRE(apart.under_way() == numbers{2, 3});
  CHECK(apart.shards[0]->pulled.back().runs == runs{{3000, 4}});
  CHECK(apart.shards[1]->pulled.back().runs == runs{{2000, 3}});
  apart.both(2);
  CHECK(d->came);
  CHECK_FALSE(c->came);
  apart.both(3);
  CHECK(c->came);
}

TEST_CASE(
    "S-M16 slots are used again while they are pulled, behind a fence; others wait their turn") {
  options o;
  o.slots = 16;
  world w{o};
  const auto a = w.offer(world::prompt(1, 8)), b = w.offer(world::prompt(2, 8)),
             c = w.offer(world::prompt(3, 8));
  w.compute(1);
  REQUIRE(w.under_way() == numbers{1, 2});
  // The first prompt's slots are free for the third: the second had its own all along.
  REQUIRE(w.replica->waits_for(2));
  CHECK(w.replica->launch_of(2).tokens.front() == 200);
  w.compute(2);
  REQUIRE(w.replica->waits_for(3));
  CHECK(w.replica->launch_of(3).tokens.front() == 300);
  CHECK(w.replica->launch_of(3).fences == numbers{3, 4});
  w.compute(3);
  for (uint64_t number = 1; number <= 6; ++number) w.both(number);
  for (const auto& x : {a, b, c}) CHECK(x->came);
  // More than there is at all:
  CHECK(w.offer(world::prompt(4, 17))->error == ec::never_fits);
  const auto all = w.offer(world::prompt(5, 16));
  w.compute(4);
  CHECK(w.replica->launch_of(4).tokens.size() == 8);
  w.compute(5);
  for (uint64_t number = 7; number <= 10; ++number) w.both(number);
  CHECK(all->came);
}

TEST_CASE("Rows that differ from those offered are never told: the prompt runs again") {
  world w;
  const auto answer = w.offer(world::prompt(1, 6));
  w.compute(1);
  w.both(1);
  w.offered(2, 5);
  w.pulled(2, 6);
  CHECK_FALSE(answer->came);
  REQUIRE(w.replica->launches.size() == 2);
  CHECK(w.replica->launches[1].tokens == w.replica->launches[0].tokens);
  w.compute(2);
  REQUIRE(w.under_way() == numbers{3, 4});
  w.both(3);
  w.both(4);
  REQUIRE(answer->came);
  CHECK(answer->value.tokens.at(0).token == token_for(1, 0, 0));
}

TEST_CASE("A pull that fails ends its other side, and its prompt runs again when all have ended") {
  world w;
  const auto answer = w.offer(world::prompt(1, 6));
  for (uint64_t run = 0; run < 3; ++run) {
    CAPTURE(run);
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
  CHECK(answer->error == ec::device_lost);
  // Nothing is left of it: every slot is free.
  const auto next = w.offer(world::prompt(2, 64));
  for (uint64_t i = 4; i < 12; ++i) w.compute(i);
  for (uint64_t number = 7; number < 7 + 16; ++number) w.both(number);
  CHECK(next->came);
  CHECK_FALSE(next->error);
}

TEST_CASE("Silence ends the worker after three runs, so that the links are made anew") {
  world w;
  const auto answer = w.offer(world::prompt(1, 6));
  bool ended = false;
  w.spawn([&](caf::event_based_actor* self) -> caf::behavior {
    self->monitor(w.worker);
    self->set_down_handler([&](const caf::down_msg& x) { ended = x.reason == ec::link_cut; });
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
  const auto answer = w.offer(world::prompt(1, 12));
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
  const auto pulling = w.offer(world::prompt(1, 6));
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
  full.offer(world::prompt(1, 8));
  const auto waiting = full.offer(world::prompt(2, 8));
  caf::anon_send(full.worker, prefill_cancel{seq(2)});
  full.settle();
  CHECK(waiting->error == ec::cancelled);
  full.compute(1);
  CHECK(full.replica->launches.size() == 1);
}

TEST_CASE("A given-up iteration ends the pulls that wait for its layers") {
  world w;
  const auto hopeless = w.offer(world::prompt(1, 12));
  for (int i = 0; i < 3; ++i) {
    w.replica->fail(1);
    w.settle();
  }
  CHECK(w.source->cancels == 1);
  CHECK_FALSE(hopeless->came);
  for (const uint64_t number : {1, 2}) {
    w.fail_offer(number);
    w.fail_pull(number);
  }
  CHECK(hopeless->error == ec::device_lost);
}

TEST_CASE(
    "A cut link begins nothing and fails nobody: the pipeline is rebuilt, or the worker ends") {
  world w;
  const auto answer = w.offer(world::prompt(1, 6));
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
  w.advance(cut_patience + std::chrono::seconds{1}, std::chrono::milliseconds{100});
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
    const auto some_pull = [&] { // one answer of one side of one pull
      std::vector<std::pair<bool, uint64_t>> owed;
      for (const auto& [number, x] : w.source->offering) owed.emplace_back(true, number);
      for (const auto& shard : w.shards)
        for (const auto& [number, x] : shard->pulling) owed.emplace_back(false, number);
      if (owed.empty()) return false;
      const auto [offers, number] = owed[random.below(owed.size())];
      const bool fails = random.below(60) == 0;
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
          w.worker, world::prompt(r, static_cast<uint32_t>(1 + random.below(40)), r % 2)));
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
        CHECK((x.error == ec::device_lost || (x.error == ec::cancelled && cancelled.contains(r))));
      else
        CHECK(x.value.tokens.at(0).token == token_for(r, 0, 0));
    }
    // No slot is lost: a prompt that needs all of them runs.
    const auto all = w.ask<prefilled>(w.worker, world::prompt(99, o.slots));
    w.replica->fail_per_mille = 0;
    do w.settle(random);
    while (some_pull());
    REQUIRE(all->came);
  }
}

} // namespace lamella::actors::test
