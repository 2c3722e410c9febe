#include "actors/kv/kv_allocator.hpp"
#include "actors/protocol/kv.hpp"
#include "actors/protocol/parity.hpp"
#include "actors/protocol/requests.hpp"
#include "tests/actors/stand_ins.hpp"

#include <numeric>

namespace lamella::actors::test {

using namespace std::chrono_literals;

namespace {

using text = std::vector<token_id>;

text counting(token_id first, size_t count) {
  text x(count);
  std::iota(x.begin(), x.end(), first);
  return x;
}

text operator+(text a, const text& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

/// An allocator with a prefix cache, and what requests, batches and the scheduler tell it.
struct cached_pool : stage {
  std::vector<attention_shard_actor> shards;
  kv_allocator_actor allocator;
  uint64_t epoch = 0;

  std::shared_ptr<shard_book> shard = std::make_shared<shard_book>();

  explicit cached_pool(uint32_t slots = 100, uint32_t tables = 1, bool parity = false,
                       caf::timespan prefix_time = 60s) {
    kv_allocator_config c;
    for (uint32_t i = 0; i < tables; ++i) c.tables.push_back("attention-" + std::to_string(i));
    if (parity) c.sharers = {"attention-1"};
    if (parity) c.parity = "attention-2";
    c.slots = slots;
    c.whole_requests = tables > 1;
    c.prefix_time = prefix_time;
    for (int i = 0; i < (parity ? 3 : 2); ++i) shards.push_back(spawn(stand_in_shard(shard)));
    allocator = spawn(kv_allocator, std::move(c));
    adopt({0, 1});
  }
  ~cached_pool() { end_all(); }

  void adopt(std::vector<uint32_t> empty, bool rebuilt = false, bool parity_is_new = false) {
    caf::anon_send(allocator, kv_adopt{++epoch, shards, std::move(empty), rebuilt, parity_is_new});
    settle();
  }
  /// As the scheduler does for a prompt; nothing when it is refused.
  std::optional<kv_holding> begin(uint64_t request, const text& tokens, uint32_t window = 4,
                                  uint64_t scope = 0, reserve_mode mode = reserve_mode::fresh,
                                  uint32_t keep_free = 0) {
    const auto count = static_cast<uint32_t>(tokens.size());
    kv_need need{seq(request), count + window, {}, 0, mode};
    if (mode == reserve_mode::resume) need.filled = count - 1;
    need.text = {scope, tokens};
    auto answer = ask<kv_grant>(allocator, kv_reserve{{need}, keep_free, false, epoch});
    settle();
    if (answer->error) return std::nullopt;
    return answer->value.holdings.front();
  }
  void filled(uint64_t request, const text& tokens) {
    caf::anon_send(allocator, kv_filled{seq(request), epoch, static_cast<uint32_t>(tokens.size())});
    settle();
  }
  /// As a batch does: it wrote `more` behind the first `position` tokens.
  void release(uint64_t request, uint32_t position = 0, const text& more = {}) {
    caf::anon_send(allocator, kv_release{{seq(request)}, epoch, {{position, more}}});
    settle();
  }
  /// A request from its prompt to the last token; how many tokens it found.
  uint32_t run(uint64_t request, const text& prompt, const text& answer = {}) {
    const auto held = begin(request, prompt, static_cast<uint32_t>(answer.size()));
    REQUIRE(held);
    filled(request, prompt);
    release(request, static_cast<uint32_t>(prompt.size()), answer);
    return held->cached;
  }
  kv_usage usage() {
    auto answer = ask<kv_usage>(allocator, status_atom_v);
    settle();
    const auto& x = answer->value;
    const auto slots = std::accumulate(x.slots.begin(), x.slots.end(), uint64_t{0});
    const auto used = std::accumulate(x.used.begin(), x.used.end(), uint64_t{0});
    CHECK(x.free + used + x.cached == slots);
    CHECK(x.references == x.held);
    return x;
  }
  uint32_t cached() { return usage().cached; }
};

} // namespace

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
    w.adopt({1});
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

TEST_CASE("prefix cache: whole requests go to the member that has most of them, if that pays") {
  cached_pool w{100, 2};
  const auto long_one = counting(100, 60);
  const auto first = w.begin(1, long_one);
  REQUIRE(first);
  w.filled(1, long_one);
  w.release(1, 60);
  SUBCASE("more than half of it") {
    const auto held = w.begin(2, long_one + counting(7, 20));
    CHECK(held->member == first->member);
    CHECK(held->cached == 60);
  }
  SUBCASE("less than half: the load is even instead") {
    w.begin(9, counting(5000, 10)); // to whichever member: the other one is emptier now
    const auto held = w.begin(2, counting(100, 20) + counting(7, 40));
    REQUIRE(held);
    const auto again = w.begin(3, counting(100, 20) + counting(9, 40));
    REQUIRE(again);
    CHECK(held->member != again->member);
  }
  SUBCASE("no room there") {
    const auto other = w.begin(2, long_one + counting(7, 1), 30);
    REQUIRE(other);
    CHECK(other->member == first->member);
    const auto last = w.begin(3, long_one + counting(8, 20), 10);
    REQUIRE(last);
    CHECK(last->member != first->member);
    CHECK(last->cached == 0);
  }
  SUBCASE("room because of the beginning alone") {
    const auto next = w.begin(2, long_one + counting(8, 20), 15);
    REQUIRE(next);
    CHECK(next->member == first->member);
    CHECK(next->cached == 60);
  }
  SUBCASE("the member was lost") {
    w.adopt({first->member});
    CHECK(w.usage().free == 200);
  }
  SUBCASE("the other member was lost") {
    w.adopt({1 - first->member});
    CHECK(w.cached() == 60);
  }
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

TEST_CASE("prefix cache: a prompt goes to a member that has room for all of its choices") {
  cached_pool w{200, 2};
  const auto prompt = counting(100, 60);
  const auto first = w.begin(1, prompt);
  REQUIRE(first);
  w.filled(1, prompt);
  w.release(1, 60);
  const auto other = w.begin(2, counting(5000, 40), 0);
  REQUIRE(other);
  REQUIRE(other->member == first->member); // where 160 are left, cached ones included
  const auto ask = [&](uint64_t request, uint32_t window) {
    std::vector<kv_need> needs{
        {seq(request), 60 + window, {}, 0, reserve_mode::fresh, 0, {0, prompt}}};
    for (uint32_t k = 1; k < 5; ++k)
      needs.push_back({seq(request, k), window, seq(request), 60, reserve_mode::fresh});
    auto answer = w.ask<kv_grant>(w.allocator, kv_reserve{needs, 0, false, w.epoch});
    w.settle();
    REQUIRE_FALSE(answer->error);
    CHECK(answer->value.holdings.size() == 5);
    return answer->value.holdings.front();
  };
  SUBCASE("which has its beginning") {
    const auto held = ask(3, 20);
    CHECK(held.member == first->member);
    CHECK(held.cached == 59);
  }
  SUBCASE("or another") {
    const auto held = ask(3, 25);
    CHECK(held.member != first->member);
    CHECK(held.cached == 0);
  }
}

TEST_CASE("prefix cache: a member with much more to do than others is not given more for it") {
  cached_pool w{200, 2};
  const auto prompt = counting(100, 20);
  const auto first = w.begin(1, prompt);
  REQUIRE(first);
  w.filled(1, prompt);
  w.release(1, 20);
  uint32_t there = 0;
  for (uint64_t i = 2; i < 12; ++i) { // each needs some slots beside those it shares
    const auto held = w.begin(i, prompt + counting(static_cast<token_id>(1000 * i), 2), 12);
    REQUIRE(held);
    there += held->member == first->member ? 1 : 0;
  }
  CHECK(there >= 4);
  CHECK(there <= 8);
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
