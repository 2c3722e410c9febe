// A prefill worker with KV of its own: what it has the shards pull, when, and what it does when a
// pull fails. Devices are stand-ins; those with real ones are in tests/actors/kv/pull_test.cpp.
#include "actors/protocol/prefills.hpp"
#include "tests/actors/lane/prompt_pulls_stage.hpp"

namespace lamella::actors::test {

TEST_CASE("S-M13 a short prompt is pulled when it is computed, and told when all shards have it") {
  world w;
  const auto answer = w.offer(prompt_of(1, 6));
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

TEST_CASE(
    "S-M13 the first token is told before the KV has come, and once more after a failed pull") {
  world w;
  const auto answer = w.offer(prompt_of(1, 6));
  w.compute(1);
  REQUIRE(w.client->first.size() == 1);
  CHECK(w.client->first[0].sequence == seq(1));
  CHECK(w.client->first[0].index == 0);
  CHECK(w.client->first[0].value.token == token_for(1, 0, 0));
  CHECK_FALSE(answer->came);
  w.fail_pull(1);
  w.fail_offer(1);
  w.both(2);
  w.compute(2); // the prompt again, with the same token
  CHECK(w.client->first.size() == 2);
  CHECK(w.client->first[1].value.token == w.client->first[0].value.token);
  for (const auto number : w.under_way()) w.both(number);
  REQUIRE(answer->came);
  CHECK(answer->value.tokens.at(0).token == w.client->first[0].value.token);
}

TEST_CASE("S-M13 of what was committed before a loss no token is told early") {
  world w;
  auto x = prompt_of(1, 6);
  x.rebuild = true;
  const auto answer = w.offer(x);
  w.compute(1);
  CHECK(w.client->first.empty());
  for (const auto number : w.under_way()) w.both(number);
  CHECK(answer->came);
}

TEST_CASE("S-M14 S-M15 chunks of a long prompt are pulled with the iterations that compute them") {
  world w;
  const auto answer = w.offer(prompt_of(1, 20));
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
  together.offer(prompt_of(1, 1)); // the others wait for it
  const auto a = together.offer(prompt_of(2, 3)), b = together.offer(prompt_of(3, 4));
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
  apart.offer(prompt_of(1, 1));
  const auto c = apart.offer(prompt_of(2, 3, 1, 1)), d = apart.offer(prompt_of(3, 4, 1, 0));
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
  const auto a = w.offer(prompt_of(1, 8)), b = w.offer(prompt_of(2, 8)),
             c = w.offer(prompt_of(3, 8));
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
  CHECK(w.offer(prompt_of(4, 17))->error == ec::never_fits);
  const auto all = w.offer(prompt_of(5, 16));
  w.compute(4);
  CHECK(w.replica->launch_of(4).tokens.size() == 8);
  w.compute(5);
  for (uint64_t number = 7; number <= 10; ++number) w.both(number);
  CHECK(all->came);
}

TEST_CASE(
    "A6 the allocator knows what lacks its parity before it is pulled, and when it is complete") {
  options o;
  o.parity = true;
  world w{o};
  const auto answer = w.offer(prompt_of(1, 20)); // pulled layer by layer, meanwhile
  REQUIRE(w.slots->pulled.size() == 1);
  CHECK(w.slots->pulled[0].holder == seq(1));
  CHECK(w.slots->pulled[0].epoch == 1);
  CHECK(w.slots->pulled[0].runs == runs{{1000, 20}});
  CHECK_FALSE(w.slots->pulled[0].complete);
  for (uint64_t i = 1; i <= 3; ++i) w.compute(i);
  for (uint64_t number = 1; number <= 6; ++number) {
    CHECK(w.slots->pulled.size() == 1);
    w.both(number);
  }
  REQUIRE(answer->came);
  REQUIRE(w.slots->pulled.size() == 2);
  CHECK(w.slots->pulled[1].complete);
  CHECK(w.slots->pulled[1].runs == runs{{1000, 20}});
  // Of one that is given up nothing is complete.
  w.offer(prompt_of(2, 6));
  caf::anon_send(w.worker, prefill_cancel{seq(2)});
  w.settle();
  w.compute(4);
  CHECK(w.slots->pulled.size() == 3);
  CHECK_FALSE(w.slots->pulled[2].complete);
}

TEST_CASE("Rows that differ from those offered are never told: the prompt runs again") {
  world w;
  const auto answer = w.offer(prompt_of(1, 6));
  w.compute(1);
  w.both(1);
  w.offered(2, 5);
  CHECK(w.counts("lamella_kv_integrity_failures_total{where=\"transfer\"}", 0));
  w.pulled(2, 6);
  CHECK(w.counts("lamella_kv_integrity_failures_total{where=\"transfer\"}", 1));
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

} // namespace lamella::actors::test
