#include "scheduler/prefix_cache.hpp"
#include "tests/random.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>
#include <optional>

using namespace lamella::scheduler;
using lamella::model::token_id;
using lamella::tests::splitmix;
using std::chrono::nanoseconds;

namespace {

using sequence = std::vector<token_id>;

sequence counting(token_id first, size_t count) {
  sequence x(count);
  std::iota(x.begin(), x.end(), first);
  return x;
}

sequence operator+(sequence a, const sequence& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

/// A pool with its cache, and requests that come, find, compute the rest, keep it and go.
struct table {
  slot_pool pool;
  prefix_cache cache;
  nanoseconds now{0};

  explicit table(uint32_t slots) : pool{slots} {}
  table(const table&) = delete;
  ~table() { cache.clear(pool); }

  struct request {
    std::vector<slot_run> runs;
    uint32_t found = 0;
  };

  /// Nothing when there is no room, even without all that only the cache refers to.
  std::optional<request> begin(const sequence& tokens, uint64_t scope = 0) {
    ++now;
    request x;
    x.runs = cache.find(scope, tokens, now);
    x.found = length_of(x.runs);
    pool.share(x.runs);
    const auto more = static_cast<uint32_t>(tokens.size()) - x.found;
    cache.make_room(pool, more);
    const auto taken = pool.take(more);
    if (!taken) {
      pool.give_back(x.runs);
      return std::nullopt;
    }
    append(x.runs, *taken);
    return x;
  }
  void keep(const sequence& tokens, const request& x, uint64_t scope = 0) {
    cache.keep(pool, scope, tokens, x.runs, ++now);
  }
  /// A whole request; how many tokens it found.
  uint32_t run(const sequence& tokens, uint64_t scope = 0) {
    const auto x = begin(tokens, scope);
    REQUIRE(x);
    keep(tokens, *x, scope);
    pool.give_back(x->runs);
    return x->found;
  }
  bool is_whole() const {
    const auto audit = pool.count();
    return audit.free == pool.free() && audit.used == pool.used() && pool.cached() <= cache.slots();
  }
};

} // namespace

TEST_CASE("prefix cache: a sequence that begins like another takes that part of its slots") {
  table t{200};
  const auto system = counting(100, 40);
  CHECK(t.run(system + counting(1000, 10)) == 0);
  CHECK(t.pool.cached() == 50);
  const auto second = t.begin(system + counting(2000, 20));
  REQUIRE(second);
  CHECK(second->found == 40);
  CHECK(t.pool.cached() == 10); // what it shares is in use
  CHECK(t.pool.free() == 130);
  t.keep(system + counting(2000, 20), *second);
  CHECK(t.cache.slots() == 70); // the common part lies there once
  t.pool.give_back(second->runs);
  CHECK(t.pool.cached() == 70);

  SUBCASE("one that goes on where another ended finds all of it") {
    CHECK(t.run(system + counting(2000, 20) + counting(3000, 5)) == 60);
    CHECK(t.cache.slots() == 75);
  }
  SUBCASE("one that ends within another finds all but what it does not ask for") {
    CHECK(t.run(counting(100, 30)) == 30);
    CHECK(t.cache.slots() == 70);
  }
  SUBCASE("others of the same tokens behind another beginning find nothing") {
    CHECK(t.run(counting(101, 39)) == 0);
  }
  SUBCASE("another scope finds nothing, and keeps its own") {
    CHECK(t.run(system, 7) == 0);
    CHECK(t.run(system, 7) == 40);
    CHECK(t.cache.slots() == 110);
  }
}

TEST_CASE("prefix cache: less than sixteen tokens are neither kept nor found") {
  table t{100};
  CHECK(t.run(counting(1, 15)) == 0);
  CHECK(t.cache.empty());
  CHECK(t.pool.free() == 100);
  CHECK(t.run(counting(1, 40)) == 0);
  CHECK(t.run(counting(1, 15) + counting(500, 20)) == 0);
  CHECK(t.run(counting(1, 16) + counting(600, 20)) == 16);
}

TEST_CASE("prefix cache: room is made of what was used least recently, from its end on") {
  table t{100};
  const auto old = counting(1000, 40), young = counting(2000, 40);
  t.run(old);
  t.run(young);
  t.run(old); // used again
  t.cache.make_room(t.pool, 50);
  CHECK(t.pool.free() == 50);
  CHECK(length_of(t.cache.find(0, young, t.now)) == 0); // 10 are left, too few to be found
  CHECK(length_of(t.cache.find(0, old, ++t.now)) == 40);
  t.cache.make_room(t.pool, 70);
  CHECK(length_of(t.cache.find(0, old, ++t.now)) == 30);
  t.cache.make_room(t.pool, 101); // more than there is: what can be had
  CHECK(t.pool.free() == 100);
  CHECK(t.cache.empty());
}

TEST_CASE("prefix cache: what is in use is kept for longer than what is not") {
  table t{100};
  const auto first = counting(1000, 40);
  const auto running = t.begin(first);
  REQUIRE(running);
  t.keep(first, *running);
  t.run(counting(2000, 40));
  t.cache.make_room(t.pool, 60);
  CHECK(length_of(t.cache.find(0, first, t.now)) == 40);
  CHECK(t.cache.slots() == 40);
  t.cache.make_room(t.pool, 100); // its slots are not the cache's to give
  CHECK(t.pool.free() == 60);
  CHECK(t.cache.slots() == 40);
  t.pool.give_back(running->runs);
  CHECK(t.pool.cached() == 40);
}

// Two requests compute the same beginning side by side: the second keeps only its own end, which
// lies in use behind slots of the first that nobody uses.
TEST_CASE("prefix cache: idle slots before slots in use can be given up") {
  table t{100};
  const auto system = counting(100, 20);
  const auto a = t.begin(system + counting(1000, 10)), b = t.begin(system + counting(2000, 10));
  REQUIRE((a && b));
  t.keep(system + counting(1000, 10), *a);
  t.keep(system + counting(2000, 10), *b);
  t.pool.give_back(a->runs);
  CHECK(t.pool.cached() == 30);
  t.cache.make_room(t.pool, 70);
  CHECK(t.pool.free() == 70);
  CHECK(t.pool.cached() == 0);
  t.pool.give_back(b->runs);
  CHECK(t.is_whole());
}

TEST_CASE("prefix cache: what nobody asks for is given up after a time") {
  table t{200};
  t.run(counting(1000, 40)); // at 1 and 2
  t.run(counting(2000, 40)); // at 3 and 4
  t.cache.expire(t.pool, nanoseconds{2});
  CHECK(t.cache.slots() == 80);
  t.cache.expire(t.pool, nanoseconds{3});
  CHECK(t.cache.slots() == 40);
  CHECK(t.pool.free() == 160);
  CHECK(t.run(counting(2000, 40)) == 40);
  t.cache.expire(t.pool, nanoseconds::max());
  CHECK(t.cache.empty());
  CHECK(t.pool.free() == 200);
}

TEST_CASE("prefix cache: lost slots are forgotten with all that comes behind them") {
  table t{200};
  const auto system = counting(100, 40);
  t.run(system + counting(1000, 20));
  const auto middle = t.cache.find(0, counting(100, 36), t.now);
  t.run(system + counting(2000, 20));
  t.run(counting(5000, 30));
  slot_set lost{200};
  lost.insert(std::vector<slot_run>{{middle.back().first + middle.back().length - 1, 1}});
  t.cache.forget(t.pool, lost);
  CHECK(t.cache.slots() == 30);
  CHECK(t.run(system) == 0);
  CHECK(t.run(counting(5000, 30)) == 30);
  CHECK(t.is_whole());
}

TEST_CASE("prefix cache: a path of ten thousand branches is taken down without a deep stack") {
  constexpr uint32_t depth = 10'000;
  slot_pool pool{4 * depth};
  {
    prefix_cache cache;
    sequence tokens = counting(0, 16);
    auto runs = *pool.take(16);
    for (uint32_t i = 0; i < depth; ++i) {
      auto side = tokens + sequence{1'000'000 + i};
      auto end = *pool.take(1);
      auto all = runs;
      append(all, end);
      cache.keep(pool, 0, side, all, nanoseconds{i});
      pool.give_back(end);
      tokens.push_back(i);
      append(runs, *pool.take(1));
      if (i % 100 != 0) continue; // comparing all of them would take long
      cache.keep(pool, 0, tokens, runs, nanoseconds{i});
    }
    cache.keep(pool, 0, tokens, runs, nanoseconds{depth});
    pool.give_back(runs);
    CHECK(cache.slots() == pool.cached());
  }
}

// Whatever requests do, each slot holds what its path says: slots are stamped with the tokens up
// to them, as a device would compute them.
TEST_CASE(
    "prefix cache: in any order of requests, what is found is what would have been computed") {
  uint64_t found = 0;
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    CAPTURE(seed);
    splitmix random{seed};
    const auto total = static_cast<uint32_t>(60 + random.below(300));
    table t{total};
    std::vector<uint64_t> content(total, 0);
    const auto stamp_of = [](uint64_t before, token_id token) {
      return (before ^ (token + 0x9e3779b97f4a7c15)) * 0x100000001b3;
    };
    struct live {
      sequence tokens;
      table::request held;
      uint64_t scope;
    };
    std::vector<live> running;
    std::vector<sequence> said;
    for (int step = 0; step < 400; ++step) {
      const auto action = random.below(10);
      if (action < 6) {
        // Often the beginning of what was said before.
        sequence tokens;
        if (!said.empty() && random.below(8) > 0) {
          tokens = said[random.below(said.size())];
          if (random.below(2) > 0) tokens.resize(random.below(tokens.size() + 1));
        }
        const auto more = 1 + random.below(40);
        for (uint64_t i = 0; i < more; ++i)
          tokens.push_back(static_cast<token_id>(random.below(3)));
        if (tokens.size() > 100) tokens.resize(100);
        const uint64_t scope = random.below(2);
        const auto idle = t.pool.free() + t.pool.cached();
        auto x = t.begin(tokens, scope);
        if (!x) {
          REQUIRE(idle < tokens.size());
          continue;
        }
        found += x->found;
        uint64_t stamp = scope;
        uint32_t position = 0;
        for (const auto& run : x->runs)
          for (auto slot = run.first; slot < run.first + run.length; ++slot, ++position) {
            stamp = stamp_of(stamp, tokens[position]);
            if (position < x->found)
              REQUIRE(content[slot] == stamp);
            else
              content[slot] = stamp;
          }
        REQUIRE(position == tokens.size());
        said.push_back(tokens);
        running.push_back({std::move(tokens), std::move(*x), scope});
      } else if (action < 9 && !running.empty()) {
        const auto which = random.below(running.size());
        auto& x = running[which];
        if (random.below(3) > 0) t.keep(x.tokens, x.held, x.scope);
        t.pool.give_back(x.held.runs);
        running.erase(running.begin() + static_cast<ptrdiff_t>(which));
      } else if (action == 9) {
        const auto kind = random.below(3);
        if (kind == 0) t.cache.expire(t.pool, t.now - nanoseconds{random.below(40)});
        if (kind == 1) t.cache.make_room(t.pool, static_cast<uint32_t>(random.below(total + 1)));
        if (kind == 2) {
          slot_set lost{total};
          lost.insert(std::vector<slot_run>{{static_cast<uint32_t>(random.below(total)), 1}});
          t.cache.forget(t.pool, lost);
        }
      }
      REQUIRE(t.is_whole());
    }
    for (const auto& x : running) t.pool.give_back(x.held.runs);
    CHECK(t.pool.cached() == t.cache.slots());
    t.cache.clear(t.pool);
    CHECK(t.pool.free() == total);
  }
  CHECK(found > 4000);
}
