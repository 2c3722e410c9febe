#include "scheduler/prefill_plan.hpp"
#include "tests/random.hpp"

#include <doctest/doctest.h>

#include <map>

using namespace lamella::scheduler;

namespace {
sequence_id id(uint64_t x) { return sequence_of(request_id{x}, 0); }

/// Where context costs nothing, the work of a token is one.
uint64_t waiting_tokens(const prefill_plan& plan) { return plan.waiting_work(1u << 31); }
} // namespace

TEST_CASE("every token is in exactly one piece, in order, in chunks that are full while it lasts") {
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    CAPTURE(seed);
    lamella::tests::splitmix random{seed};
    const auto chunk = static_cast<uint32_t>(1 + random.below(54));
    const auto prompts_max = static_cast<uint32_t>(1 + random.below(7));
    prefill_plan plan{chunk};
    std::map<sequence_id, uint32_t> tokens, done;
    std::vector<sequence_id> order, finished;
    uint64_t next = 1, left = 0;
    for (int step = 0; step < 200 || !plan.empty(); ++step) {
      if (step < 200 && random.below(3) == 0) {
        const auto count = static_cast<uint32_t>(1 + random.below(170));
        tokens[id(next)] = count;
        order.push_back(id(next));
        left += count;
        plan.add(id(next++), count);
      }
      CHECK(waiting_tokens(plan) == left);
      const auto pieces = plan.next(prompts_max);
      CHECK(pieces.empty() == (left == 0));
      CHECK(pieces.size() <= prompts_max);
      uint32_t total = 0;
      for (const auto& x : pieces) {
        CHECK(x.tokens > 0);
        CHECK(x.position == done[x.sequence]);
        done[x.sequence] += x.tokens;
        CHECK(x.last == (done[x.sequence] == tokens[x.sequence]));
        if (x.last) finished.push_back(x.sequence);
        total += x.tokens;
      }
      CHECK(total <= chunk);
      if (pieces.size() < prompts_max) CHECK(total == std::min<uint64_t>(chunk, left));
      left -= total;
    }
    CHECK(done == tokens);
    CHECK(finished == order); // first come, first served
  }
}

TEST_CASE("a prompt of one chunk more or less is cut where it must") {
  for (uint32_t tokens : {15u, 16u, 17u, 31u, 32u, 33u}) {
    prefill_plan plan{16};
    plan.add(id(1), tokens);
    uint32_t iterations = 0, seen = 0;
    while (!plan.empty()) {
      const auto pieces = plan.next(7);
      REQUIRE(pieces.size() == 1);
      seen += pieces[0].tokens;
      CHECK(pieces[0].last == (seen == tokens));
      ++iterations;
    }
    CHECK(iterations == (tokens + 15) / 16);
  }
}

TEST_CASE("a dropped prompt gives no more pieces, and the others keep their order") {
  prefill_plan plan{10};
  for (uint64_t x : {1u, 2u, 3u}) plan.add(id(x), 7);
  CHECK(plan.next(1).at(0).sequence == id(1));
  CHECK(plan.remove(id(2)));
  CHECK_FALSE(plan.remove(id(2)));
  CHECK_FALSE(plan.remove(id(1))); // it is done
  CHECK(waiting_tokens(plan) == 7);
  const auto pieces = plan.next(7);
  REQUIRE(pieces.size() == 1);
  CHECK(pieces[0].sequence == id(3));
  CHECK(plan.next(7).empty());
}

TEST_CASE("a prompt that was begun can be dropped too") {
  prefill_plan plan{10};
  plan.add(id(1), 54);
  plan.next(1);
  CHECK(plan.remove(id(1)));
  CHECK(plan.empty());
}

namespace {

using std::chrono::nanoseconds;
using std::chrono::seconds;

/// The sequences of the next iterations, one prompt each, until nothing waits.
std::vector<uint64_t> order_of(prefill_plan& plan, nanoseconds now = {}) {
  std::vector<uint64_t> order;
  while (!plan.empty()) {
    const auto pieces = plan.next(1, now);
    REQUIRE(pieces.size() == 1);
    if (pieces[0].last) order.push_back(static_cast<uint64_t>(request_of(pieces[0].sequence)));
  }
  return order;
}

} // namespace

TEST_CASE("L-M26 the shortest rebuild goes first, equal ones as they came") {
  prefill_plan plan{10};
  const uint32_t tokens[] = {30, 7, 30, 12, 7};
  for (uint64_t i = 0; i < 5; ++i)
    plan.add(rebuild_entry{id(i + 1), tokens[i], nanoseconds{static_cast<int64_t>(i)}});
  CHECK(order_of(plan) == std::vector<uint64_t>{2, 5, 4, 1, 3});
}

TEST_CASE("L-M26 a near deadline goes before a short rebuild") {
  prefill_plan plan{10};
  plan.add(rebuild_entry{id(1), 5, {}, seconds{600}});
  plan.add(rebuild_entry{id(2), 50, {}, seconds{30}});
  plan.add(rebuild_entry{id(3), 70, {}, seconds{5}});
  plan.add(rebuild_entry{id(4), 40, {}, seconds{59}});
  CHECK(order_of(plan) == std::vector<uint64_t>{3, 4, 2, 1});
}

TEST_CASE("L-M26 a rebuild that has waited long enough is not overtaken by short ones") {
  for (const bool long_enough : {false, true}) {
    prefill_plan plan{10};
    plan.add(rebuild_entry{id(1), 100, seconds{1}});
    plan.add(rebuild_entry{id(2), 90, seconds{2}});
    plan.add(rebuild_entry{id(3), 5, seconds{3}});
    const auto now = seconds{2} + prefill_plan::timeout - nanoseconds{long_enough ? 0 : 1};
    CHECK(order_of(plan, now)
          == (long_enough ? std::vector<uint64_t>{1, 2, 3} : std::vector<uint64_t>{1, 3, 2}));
  }
}

TEST_CASE("L-M26 rebuilds and new prompts share an iteration; neither waits for all of the other") {
  prefill_plan plan{100, 70};
  for (uint64_t i = 1; i <= 4; ++i) plan.add(id(i), 40);
  for (uint64_t i = 11; i <= 14; ++i) plan.add(rebuild_entry{id(i), 60, {}});
  const auto tokens_of = [](const auto& pieces, bool rebuilds) {
    uint32_t total = 0;
    for (const auto& x : pieces)
      if ((static_cast<uint64_t>(request_of(x.sequence)) > 10) == rebuilds) total += x.tokens;
    return total;
  };
  for (int i = 0; i < 3; ++i) {
    const auto pieces = plan.next(64);
    CHECK(tokens_of(pieces, true) == 70);
    CHECK(tokens_of(pieces, false) == 30);
  }
  CHECK(plan.rebuild_tokens() == 30);
  CHECK(tokens_of(plan.next(64), false) == 70); // what rebuilds leave
  // And the other way round; the number of prompts leaves room for both, too.
  prefill_plan other{100, 70};
  other.add(id(1), 10);
  for (uint64_t i = 11; i <= 20; ++i) other.add(rebuild_entry{id(i), 20, {}});
  const auto pieces = other.next(3);
  CHECK(tokens_of(pieces, true) == 40);
  CHECK(tokens_of(pieces, false) == 10);
  CHECK(tokens_of(other.next(64), true) == 100);
}

TEST_CASE("L-M26 what may not begin holds back what comes after it, and what has begun goes on") {
  prefill_plan plan{10};
  uint32_t room = 100;
  const auto begins = [&](sequence_id, uint32_t tokens) {
    if (tokens > room) return false;
    room -= tokens;
    return true;
  };
  plan.add(id(1), 60);
  plan.add(id(2), 50);
  plan.add(id(3), 5);
  CHECK(plan.next(7, {}, begins).size() == 1);
  CHECK(room == 40); // asked once
  plan.add(rebuild_entry{id(4), 45, {}});
  for (int i = 0; i < 5; ++i) {
    const auto pieces = plan.next(7, {}, begins);
    REQUIRE(pieces.size() == 1);
    CHECK(pieces[0].sequence == id(1)); // neither the rebuild nor the short one behind it
  }
  CHECK(plan.next(7, {}, begins).empty());
  room = 100;
  CHECK(plan.next(7, {}, begins).size() == 2);
}

TEST_CASE(
    "L-M26 rebuilds and new prompts in any order: each token once, and nobody waits for ever") {
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    CAPTURE(seed);
    lamella::tests::splitmix random{seed};
    const auto chunk = static_cast<uint32_t>(2 + random.below(60));
    const auto prompts_max = static_cast<uint32_t>(2 + random.below(7));
    prefill_plan plan{chunk, static_cast<uint32_t>(1 + random.below(99))};
    uint32_t room = 200;
    std::map<sequence_id, uint32_t> tokens, done;
    uint64_t next = 1, left = 0, idle = 0;
    nanoseconds now{0};
    for (int step = 0; step < 200 || !plan.empty(); ++step, now += seconds{1}) {
      if (step < 200 && random.below(2) == 0) {
        const auto count = static_cast<uint32_t>(1 + random.below(170));
        tokens[id(next)] = count;
        left += count;
        if (random.below(2) == 0)
          plan.add(rebuild_entry{id(next), count, now, now + seconds{random.below(100)}});
        else
          plan.add(id(next), count);
        ++next;
      }
      const auto pieces = plan.next(prompts_max, now, [&](sequence_id, uint32_t count) {
        const bool fits = count <= room;
        if (fits) room -= count;
        return fits;
      });
      uint32_t total = 0;
      for (const auto& x : pieces) {
        CHECK(x.position == done[x.sequence]);
        done[x.sequence] += x.tokens;
        CHECK(x.last == (done[x.sequence] == tokens[x.sequence]));
        if (x.last) room += tokens[x.sequence];
        total += x.tokens;
      }
      CHECK(total <= chunk);
      CHECK(pieces.size() <= prompts_max);
      left -= total;
      CHECK(waiting_tokens(plan) == left);
      idle = total == 0 && left > 0 ? idle + 1 : 0;
      REQUIRE(idle < 2); // something always goes on
    }
    CHECK(done == tokens);
    CHECK(room == 200);
  }
}

TEST_CASE("prefix cache: what a prompt has found is in no piece of it") {
  prefill_plan plan{8};
  plan.add(id(1), 30, 20);
  plan.add(id(2), 9);
  plan.add(rebuild_entry{id(3), 16, {}, seconds{600}, 15});
  CHECK(waiting_tokens(plan) == 10 + 9 + 1);
  CHECK(plan.rebuild_tokens() == 1);
  std::map<sequence_id, uint32_t> first, total;
  while (!plan.empty())
    for (const auto& x : plan.next(4)) {
      first.try_emplace(x.sequence, x.position);
      total[x.sequence] += x.tokens;
    }
  CHECK(first == std::map<sequence_id, uint32_t>{{id(1), 20}, {id(2), 0}, {id(3), 15}});
  CHECK(total == std::map<sequence_id, uint32_t>{{id(1), 10}, {id(2), 9}, {id(3), 1}});
}

namespace {

/// An iteration of the given bounds.
prefill_limits at(seconds now, uint64_t work = std::numeric_limits<uint64_t>::max()) {
  return {7, now, work, 1e6}; // a millisecond for a token of an empty context
}

} // namespace

TEST_CASE("S-M10 a short prompt passes a long one that came before, and no equal one") {
  prefill_plan plan{64, 70, prompt_order::fair};
  plan.add(id(1), 8000, 0, seconds{0});
  CHECK(plan.next(at(seconds{0})).at(0).sequence == id(1));
  plan.add(id(2), 50, 0, seconds{1});
  plan.add(id(3), 50, 0, seconds{1});
  plan.add(id(4), 8000, 0, seconds{1});
  const auto pieces = plan.next(at(seconds{1}));
  REQUIRE(pieces.size() == 2);
  CHECK(pieces[0].sequence == id(2));
  CHECK(pieces[0].last);
  CHECK(pieces[1].sequence == id(3));
  CHECK(plan.next(at(seconds{1})).at(0).sequence == id(3));
  while (waiting_tokens(plan) > 8000) CHECK(plan.next(at(seconds{1})).at(0).sequence == id(1));
}

TEST_CASE("S-M10 a long prompt is passed only by those that come within four times its own time") {
  // Short ones come without end, and alone they keep the device busy.
  prefill_plan plan{64, 70, prompt_order::fair};
  plan.add(id(1), 640, 0, seconds{0});
  const auto own_ns = static_cast<double>(prefill_work(0, 640)) * 1e6;
  uint64_t next = 2;
  double now = 0, ended = 0;
  while (ended == 0 && now < 100 * own_ns) {
    const nanoseconds clock{static_cast<int64_t>(now)};
    plan.add(id(next++), 64, 0, clock);
    for (const auto& x : plan.next({7, clock, UINT64_MAX, 1e6})) {
      now += static_cast<double>(prefill_work(x.position, x.tokens)) * 1e6;
      if (x.sequence == id(1) && x.last) ended = now;
    }
  }
  CHECK(ended > 2 * own_ns);
  CHECK(ended < (1 + 2 * prefill_plan::stretch) * own_ns);
}

TEST_CASE("an iteration takes no more work than its bound, and sixteen tokens at least") {
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    CAPTURE(seed);
    lamella::tests::splitmix random{seed};
    prefill_plan plan{512, 70, prompt_order::fair};
    uint64_t left = 0;
    for (uint64_t i = 1; i <= 5; ++i) {
      const auto tokens = static_cast<uint32_t>(1 + random.below(9000));
      plan.add(id(i), tokens, 0, seconds{static_cast<int64_t>(i)});
      left += tokens;
    }
    while (!plan.empty()) {
      const uint64_t bound = random.below(2000);
      uint64_t work = 0, tokens = 0;
      for (const auto& x : plan.next(at(seconds{9}, bound))) {
        work += prefill_work(x.position, x.tokens);
        tokens += x.tokens;
      }
      CHECK(tokens >= std::min<uint64_t>(left, prefill_plan::tokens_least));
      if (tokens > prefill_plan::tokens_least) CHECK(work <= bound);
      left -= tokens;
    }
    CHECK(left == 0);
  }
}

TEST_CASE("a prompt that ends shares its iteration with others that end, and little of those that "
          "do not") {
  prefill_plan plan{512, 70, prompt_order::fair};
  plan.add(id(1), 8000, 0, seconds{0});
  for (uint64_t i = 2; i <= 4; ++i) plan.add(id(i), 40, 0, seconds{1});
  const auto pieces = plan.next(at(seconds{1}, 200));
  REQUIRE(pieces.size() == 4);
  for (size_t i = 0; i < 3; ++i) CHECK(pieces[i].last);
  CHECK(pieces[3].sequence == id(1));
  CHECK(prefill_work(0, pieces[3].tokens) <= 50);
  CHECK(pieces[3].tokens >= 45);
}

TEST_CASE("L-M26 where work is the bound, new prompts get their share beside rebuilds") {
  prefill_plan plan{512, 70, prompt_order::fair};
  plan.add(id(1), 4000, 0, seconds{0});
  plan.add(rebuild_entry{id(2), 4000});
  uint64_t fresh = 0, rebuilt = 0;
  for (int i = 0; i < 10; ++i)
    for (const auto& x : plan.next(at(seconds{1}, 200)))
      (x.sequence == id(1) ? fresh : rebuilt) += prefill_work(x.position, x.tokens);
  CHECK(fresh >= 10 * 200 * 25 / 100);
  CHECK(rebuilt >= 10 * 200 * 60 / 100);
}

TEST_CASE("S-M10 what context costs beside products is told by the model") {
  // SmolLM2-135M: 9 heads of 64, 3 for KV, 576 wide, 1,536 between.
  CHECK(positions_like_a_token(576 * (2 * 576 + 2 * 192 + 3 * 1536), 2 * 576) == 1536);
  CHECK(positions_like_a_token(1, 1000) == positions_least);
  CHECK(prefill_work(1000, 100) == 100 + 100 * 1100 / 1024);
  CHECK(prefill_work(1000, 100, 10'000) == 111);
  // The same time lets more tokens in where context is cheap.
  const auto tokens = [](uint32_t positions) {
    prefill_plan plan{512};
    plan.add(id(1), 4000, 3000);
    return plan.next({.work = 200, .positions = positions}).at(0).tokens;
  };
  CHECK(tokens(20'000) > 2 * tokens(1024));
}

TEST_CASE("scored prompts share the rows of logits of an iteration, and others go on beside them") {
  for (const auto order : {prompt_order::fcfs, prompt_order::fair}) {
    prefill_plan plan{64, 70, order};
    plan.add(id(1), 25, 0, {}, true);
    plan.add(id(2), 9, 0, {}, true);
    plan.add(id(3), 100);
    prefill_limits limits;
    limits.scored_rows = 10;
    std::map<sequence_id, uint32_t> done;
    uint32_t iterations = 0;
    while (!plan.empty()) {
      uint32_t scored = 0, all = 0;
      for (const auto& x : plan.next(limits)) {
        CHECK(x.scored == (x.sequence != id(3)));
        CHECK(x.position == done[x.sequence]);
        done[x.sequence] += x.tokens;
        scored += x.scored ? x.tokens : 0;
        all += x.tokens;
      }
      CHECK(scored <= 10);
      CHECK(all > 0);
      ++iterations;
    }
    CHECK(done == std::map<sequence_id, uint32_t>{{id(1), 25}, {id(2), 9}, {id(3), 100}});
    CHECK(iterations == 4); // 34 scored rows
  }
  CHECK(scored_rows_within(49'152) == 128);
  CHECK(scored_rows_within(262'144) == 64);
  CHECK(scored_rows_within(uint64_t{1} << 30) == 16);
}
