#include "actors/protocol/kv.hpp"
#include "tests/actors/kv/cached_pool.hpp"

namespace lamella::actors::test {

TEST_CASE(
    "prefix cache: a prompt takes the slots of another's beginning, from its first token on") {
  cached_pool w;
  const auto system = counting(100, 30);
  const auto first = w.begin(1, system + counting(1000, 5));
  REQUIRE(first);
  CHECK(first->cached == 0);
  SUBCASE("not before they are filled") {
    const auto second = w.begin(2, system + counting(2000, 5));
    CHECK(second->cached == 0);
    CHECK(w.cached() == 0);
  }
  SUBCASE("while the other one still runs") {
    w.filled(1, system + counting(1000, 5));
    const auto second = w.begin(2, system + counting(2000, 5));
    REQUIRE(second);
    CHECK(second->cached == 30);
    CHECK(scheduler::prefix(second->runs, 30) == scheduler::prefix(first->runs, 30));
    CHECK(scheduler::length_of(second->runs) == 39);
    CHECK(w.usage().used.front() == 39 + 9);
    CHECK(w.cached() == 0); // all of it is in use
  }
  SUBCASE("and when it is over, with what it answered") {
    w.filled(1, system + counting(1000, 5));
    w.release(1, 35, counting(5000, 3));
    CHECK(w.cached() == 38);
    CHECK(w.usage().used.front() == 0);
    const auto next = w.begin(2, system + counting(1000, 5) + counting(5000, 3) + counting(9, 4));
    CHECK(next->cached == 38);
  }
  SUBCASE("but the last token of a prompt is computed: its logits are wanted") {
    w.filled(1, system + counting(1000, 5));
    CHECK(w.begin(2, system)->cached == 29);
  }
  SUBCASE("what was never said to be filled is not kept") {
    w.release(1);
    CHECK(w.cached() == 0);
    CHECK(w.usage().free == 100);
  }
}

TEST_CASE("prefix cache: choices of one prompt keep their common part once and each its own end") {
  cached_pool w;
  const auto prompt = counting(100, 30);
  kv_need one{seq(1), 34, {}, 0, reserve_mode::fresh, 0, {0, prompt}};
  kv_need two{seq(1, 1), 4, seq(1), 30, reserve_mode::fresh};
  auto answer = w.ask<kv_grant>(w.allocator, kv_reserve{{one, two}, 0, false, w.epoch});
  w.settle();
  REQUIRE_FALSE(answer->error);
  w.filled(1, prompt);
  caf::anon_send(
      w.allocator,
      kv_release{{seq(1), seq(1, 1)}, w.epoch, {{30, counting(1000, 3)}, {30, counting(2000, 2)}}});
  w.settle();
  CHECK(w.cached() == 35);
  CHECK(w.begin(2, prompt + counting(2000, 2) + counting(7, 1))->cached == 32);
}

TEST_CASE("prefix cache: a prompt that is to be computed takes nothing, and others take its KV") {
  cached_pool w;
  const auto prompt = counting(100, 30);
  w.run(1, prompt);
  CHECK(w.cached() == 30);
  kv_need whole{seq(2), 34, {}, 0, reserve_mode::fresh, 0, {0, prompt, true}};
  const auto answer = w.ask<kv_grant>(w.allocator, kv_reserve{{whole}, 0, false, w.epoch});
  w.settle();
  REQUIRE_FALSE(answer->error);
  CHECK(answer->value.holdings.front().cached == 0);
  CHECK(w.usage().used.front() == 34);
  w.filled(2, prompt);
  w.release(2, 30, counting(1000, 2));
  CHECK(w.begin(3, prompt + counting(1000, 2) + counting(7, 1))->cached == 32);
}

TEST_CASE("prefix cache: callers of different scopes share nothing") {
  cached_pool w;
  w.run(1, counting(100, 30));
  CHECK(w.begin(2, counting(100, 30), 4, 77)->cached == 0);
  CHECK(w.begin(3, counting(100, 30), 4, 0)->cached == 29);
}

TEST_CASE("prefix cache: gives up its slots for whoever needs them, and nobody is refused for it") {
  cached_pool w;
  w.run(1, counting(1000, 40));
  w.run(2, counting(2000, 40));
  CHECK(w.usage().free == 20);
  SUBCASE("the least recently used ones") {
    REQUIRE(w.begin(3, counting(3000, 50), 0));
    CHECK(w.cached() == 50);
    CHECK(w.begin(4, counting(2000, 40), 9)->cached == 39);
  }
  SUBCASE("all of them") {
    CHECK_FALSE(w.begin(3, counting(3000, 101), 0));
    CHECK_FALSE(w.begin(3, counting(3000, 90), 0, 0, reserve_mode::fresh, 11));
    CHECK(w.cached() == 80);
    CHECK(w.begin(3, counting(3000, 90), 0, 0, reserve_mode::fresh, 10));
    CHECK(w.cached() == 10);
  }
  SUBCASE("but not those that the same prompt has just found") {
    const auto held = w.begin(3, counting(1000, 40) + counting(7, 50), 10);
    REQUIRE(held);
    CHECK(held->cached == 40);
    CHECK(w.usage().free == 0);
    CHECK(w.cached() == 0);
  }
  SUBCASE("a prompt for which even all of them are too few leaves no trace") {
    CHECK_FALSE(w.begin(3, counting(1000, 40) + counting(7, 55), 10));
    const auto now = w.usage();
    CHECK(now.used.front() == 0);
    CHECK(now.cached == 80);
  }
  SUBCASE("for what runs and grows") {
    REQUIRE(w.begin(3, counting(3000, 20), 0));
    auto more = w.ask<kv_grant>(
        w.allocator,
        kv_reserve{{{seq(3), 60, {}, 0, reserve_mode::extend, 20}}, 0, false, w.epoch});
    w.settle();
    CHECK_FALSE(more->error);
    CHECK(w.cached() == 20);
  }
}

TEST_CASE("prefix cache: outlives an epoch whose shards have their KV, and no other") {
  cached_pool w;
  w.run(1, counting(100, 30));
  SUBCASE("a replica was lost") {
    w.adopt({});
    CHECK(w.begin(2, counting(100, 30))->cached == 29);
  }
  SUBCASE("a shard was lost") {
    w.adopt({0});
    CHECK(w.usage().free == 100);
    CHECK(w.begin(2, counting(100, 30))->cached == 0);
  }
}

// What nobody holds is neither read nor protected by whoever makes the parity anew.
TEST_CASE("prefix cache: keeps only what has its parity") {
  cached_pool w{100, 1, true};
  w.run(1, counting(100, 30));
  CHECK(w.begin(2, counting(500, 20)));
  w.filled(2, counting(500, 20));
  CHECK(w.usage().parity == 24); // of those in use
  SUBCASE("a shard was rebuilt from it") {
    w.adopt({}, true);
    CHECK(w.cached() == 30);
  }
  SUBCASE("the parity was lost") {
    w.adopt({}, false, true);
    CHECK(w.cached() == 0);
    CHECK(w.usage().parity == 0);
    w.begin(2, counting(500, 20), 4, 0, reserve_mode::resume); // it goes on with what has none
    w.release(2, 19, counting(519, 1));
    CHECK(w.cached() == 0);
    CHECK(w.run(3, counting(100, 30)) == 0);
    CHECK(w.cached() == 30);
  }
  SUBCASE("some of it turned out to be wrong") {
    const auto found = w.begin(4, counting(100, 30));
    REQUIRE(found);
    REQUIRE(found->cached == 29);
    const std::vector<slot_run> wrong{{found->runs.front().first + 20, 1}};
    const auto tell = [&](bool have) {
      auto done = w.ask<bool>(w.allocator, kv_protection{w.epoch, wrong, have});
      w.settle();
      CHECK(done->value);
    };
    tell(false);
    tell(true); // its parity is made anew, of what is there
    w.release(4, 30, counting(7, 3));
    CHECK(w.begin(5, counting(100, 30))->cached == 0);
    CHECK(w.usage().used.front() == 24 + 34); // nothing of it is kept for others
  }
}

TEST_CASE("prefix cache: what nobody asks for is given up in time, and memory goes back then") {
  cached_pool w{200, 1, false, 60s};
  w.run(1, counting(100, 100));
  w.advance(50s, 1s);
  CHECK(w.run(2, counting(100, 40)) == 39);
  CHECK(w.cached() == 100);
  w.advance(25s, 1s); // what is behind the forty was not asked for
  CHECK(w.cached() == 40);
  CHECK(w.shard->trims == 0);
  w.advance(60s, 1s);
  CHECK(w.usage().free == 200);
  CHECK(w.shard->trims > 0);
}

TEST_CASE("prefix cache: without a time it is not there") {
  cached_pool w{100, 1, false, 0s};
  CHECK(w.run(1, counting(100, 30), counting(7, 3)) == 0);
  CHECK(w.run(2, counting(100, 30)) == 0);
  CHECK(w.usage().free == 100);
}

TEST_CASE("prefix cache: what is doubted goes to nobody else, and those who have it go on") {
  cached_pool w;
  const auto prompt = counting(100, 40);
  w.run(1, prompt);
  const auto found = w.begin(2, prompt);
  REQUIRE(found);
  CHECK(found->cached == 39);
  caf::anon_send(w.allocator, kv_doubt{seq(2), w.epoch - 1});
  w.settle();
  CHECK(w.cached() == 1); // another epoch's
  caf::anon_send(w.allocator, kv_doubt{seq(2), w.epoch});
  w.settle();
  CHECK(w.begin(3, prompt)->cached == 0);
  w.filled(2, prompt);
  w.release(2, 40, counting(7, 3));
  CHECK(w.cached() == 0);
  CHECK(w.begin(4, prompt)->cached == 0);
}

TEST_CASE("prefix cache: what comes too late means nothing") {
  cached_pool w;
  const auto prompt = counting(100, 30);
  REQUIRE(w.begin(1, prompt));
  caf::anon_send(w.allocator, kv_filled{seq(1), w.epoch - 1, 30});
  caf::anon_send(w.allocator, kv_filled{seq(8), w.epoch, 30});
  caf::anon_send(w.allocator, kv_filled{seq(1), w.epoch, 3000});
  w.settle();
  CHECK(w.begin(2, prompt)->cached == 0);
  w.release(2, 400, counting(7, 3)); // behind what it was to hold
  caf::anon_send(w.allocator, kv_release{{seq(1)}, w.epoch - 1, {{30, counting(7, 3)}}});
  w.settle();
  CHECK(w.usage().used.front() == 34);
  CHECK(w.cached() == 0);
}

} // namespace lamella::actors::test
