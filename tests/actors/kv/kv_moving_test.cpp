// The allocator's side of a move: what is copied, where it goes, and what the next epoch keeps.
#include "actors/protocol/kv.hpp"
#include "scheduler/slot_pool.hpp"
#include "tests/actors/kv/moving_pool.hpp"

#include <map>

namespace lamella::actors::test {

TEST_CASE("L-M03 what was copied is kept in the next epoch, what came later is not") {
  moving_pool x;
  const auto a = counting(1, 20), b = counting(100, 9);
  const auto held = x.begin(1, a);
  REQUIRE(held);
  REQUIRE(x.begin(2, b));
  x.filled(1, a);
  REQUIRE(x.prepare(1, 100));
  CHECK(x.copy_all() == 20); // of the other nothing is committed
  x.filled(2, b);
  CHECK(x.next().left == 0);
  x.take_over(1, 100);
  const auto again = x.resume(1, a + text{7});
  REQUIRE(again);
  CHECK(again->kept);
  CHECK(scheduler::prefix(again->runs, 24) == held->runs); // same slots where the table has them
  const auto other = x.resume(2, b + text{7});
  REQUIRE(other);
  CHECK_FALSE(other->kept);
  x.usage();
}

TEST_CASE("L-M03 sequences move between tables that stay, until these are about equally full") {
  moving_pool x{100, 2};
  std::vector<text> texts;
  for (uint64_t i = 1; i <= 8; ++i) {
    texts.push_back(counting(static_cast<uint32_t>(100 * i), 20));
    const auto held = x.begin(i, texts.back(), 0);
    REQUIRE(held);
    CHECK(held->member == (i + 1) % 2);
    x.filled(i, texts.back());
  }
  CHECK(x.balance().now == 0);
  for (const uint64_t i : {2, 4, 6}) x.release(i);
  CHECK(x.balance().now == doctest::Approx(0.6)); // 80 and 20 of 100
  CHECK(x.balance().after == doctest::Approx(0.2));
  REQUIRE(x.level(2, 100));
  CHECK(x.copy_all() == 100); // those that stay are looked at, too
  x.take_over(2, 100);
  std::vector<uint32_t> in(2);
  for (const uint64_t i : {1, 3, 5, 7, 8}) {
    const auto again = x.resume(i, texts[i - 1] + text{7});
    REQUIRE(again);
    CHECK(again->kept);
    in[again->member] += 1;
  }
  CHECK(std::ranges::max(in) == 3);
  CHECK(x.balance().now < 0.3); // each has got a window of slots, too
}

TEST_CASE("L-M03 one long sequence in a table cannot be levelled, and nothing moves") {
  moving_pool x{100, 2};
  const auto a = counting(1, 60);
  const auto held = x.begin(1, a, 0);
  REQUIRE(held);
  x.filled(1, a);
  CHECK(x.balance().now == doctest::Approx(0.6));
  CHECK(x.balance().after == doctest::Approx(0.6));
  REQUIRE(x.level(2, 100));
  x.copy_all();
  x.take_over(2, 100);
  CHECK(x.resume(1, a + text{7})->member == held->member);
}

TEST_CASE("L-M03 a move says how many slots go from which table to which") {
  moving_pool x{100, 2};
  REQUIRE(x.begin(1, counting(1, 20), 0)->member == 0);
  REQUIRE(x.begin(2, counting(100, 30), 0)->member == 1);
  const auto used = x.usage().used;
  REQUIRE(used[0] >= 20);
  REQUIRE(used[1] >= 30);
  auto answer =
      x.ask<kv_move_plan>(x.allocator, kv_move_begin{x.epoch, std::vector<uint32_t>{100, 0}});
  x.settle();
  REQUIRE(answer->came);
  CHECK(answer->value.loads
        == std::vector<scheduler::kv_move_load>{{0, 0, used[0]}, {1, 0, used[1]}});
}

TEST_CASE("L-M03 a cell without slots gets some, sequences move there, and it goes again") {
  moving_pool x{100, 1};
  const auto a = counting(1, 20), b = counting(100, 20);
  REQUIRE(x.begin(1, a, 0));
  REQUIRE(x.begin(2, b, 0));
  x.filled(1, a);
  x.filled(2, b);
  const auto move_to = [&](std::vector<uint32_t> slots) {
    auto answer = x.ask<kv_move_plan>(x.allocator, kv_move_begin{x.epoch, slots});
    x.settle();
    REQUIRE_FALSE(answer->error);
    x.copy_all();
    kv_adopt adopt{++x.epoch, x.shards, {}};
    for (size_t i = 0; i < slots.size(); ++i)
      adopt.takes.tables.list.push_back({{"attention-" + std::to_string(i)}, slots[i]});
    adopt.planned = adopt.takes.moved = true;
    caf::anon_send(x.allocator, adopt);
    x.settle();
    std::vector<uint32_t> members;
    for (const auto& [request, tokens] : {std::pair{1, a}, std::pair{2, b}}) {
      const auto again = x.resume(static_cast<uint64_t>(request), tokens + text{7});
      REQUIRE(again);
      CHECK(again->kept);
      members.push_back(again->member);
    }
    CHECK(x.usage().slots == slots);
    return members;
  };
  CHECK(move_to({100, 0}) == std::vector<uint32_t>{0, 0});
  auto both = move_to({100, 60});
  std::ranges::sort(both);
  CHECK(both == std::vector<uint32_t>{0, 1});
  CHECK(move_to({0, 60}) == std::vector<uint32_t>{1, 1});
  CHECK(move_to({100, 0}) == std::vector<uint32_t>{0, 0});
}

TEST_CASE("L-M23 tables of unequal size fill evenly, and what is long goes where it has room") {
  moving_pool x{100, 2};
  kv_adopt larger{++x.epoch, x.shards, {}};
  larger.takes.tables.list = {{{"attention-0"}, 100}, {{"attention-1"}, 400}};
  caf::anon_send(x.allocator, larger);
  x.settle();
  const auto begin = [&](uint64_t request, uint32_t slots) {
    REQUIRE(x.begin(request, counting(static_cast<uint32_t>(100 * request), slots), 0));
    return x.usage().used;
  };
  for (uint64_t i = 1; i <= 9; ++i) begin(i, 20);
  CHECK(begin(10, 20) == std::vector<uint32_t>{40, 160});
  CHECK(begin(11, 80) == std::vector<uint32_t>{40, 240});
  CHECK(begin(12, 50) == std::vector<uint32_t>{90, 240}); // two fifths of it, of the other three
}

TEST_CASE("L-M03 slots that were freed and taken again meanwhile are copied again") {
  moving_pool x;
  const auto a = counting(1, 20);
  REQUIRE(x.begin(1, a, 0));
  x.filled(1, a);
  REQUIRE(x.prepare(1, 100));
  CHECK(x.copy_all() == 20);
  x.release(1);
  const auto b = counting(200, 20);
  REQUIRE(x.begin(2, b, 0)); // the same slots, most likely
  x.filled(2, b);
  CHECK(x.copy_all() == 20);
  x.take_over(1, 100);
  CHECK(x.resume(2, b + text{7})->kept);
}

TEST_CASE("L-M03 slots that are being copied are given to nobody, though their holder ends") {
  moving_pool x{20};
  const auto a = counting(1, 10);
  REQUIRE(x.begin(1, a, 0));
  x.filled(1, a);
  REQUIRE(x.prepare(1, 20));
  REQUIRE_FALSE(x.next().from.empty());
  x.release(1);
  CHECK_FALSE(x.begin(2, counting(50, 20), 0)); // only ten are free
  x.done();
  x.next();
  CHECK(x.begin(2, counting(50, 20), 0));
}

TEST_CASE("V-M11 a smaller table: what is above its end moves down, and nobody gets slots there") {
  moving_pool x{100};
  const auto a = counting(1, 60), b = counting(100, 30);
  REQUIRE(x.begin(1, a, 0));
  const auto held = x.begin(2, b, 0);
  REQUIRE(held);
  x.filled(1, a);
  x.filled(2, b);
  CHECK_FALSE(x.prepare(1, 50)); // no room: nothing has changed
  CHECK(x.usage().used.front() == 90);
  x.release(1);
  REQUIRE(x.prepare(1, 50));
  const auto c = x.begin(3, counting(300, 10), 0);
  REQUIRE(c);
  for (const auto& run : c->runs) CHECK(run.first + run.length <= 50);
  CHECK(x.copy_all() == 30);
  x.take_over(1, 50);
  const auto again = x.resume(2, b + text{7});
  REQUIRE(again);
  CHECK(again->kept);
  for (const auto& run : again->runs) CHECK(run.first + run.length <= 50);
  CHECK(x.usage().slots == std::vector<uint32_t>{50});
}

TEST_CASE("V-M11 by request, sequences of a table that goes find a place in one that stays") {
  moving_pool x{60, 2};
  const auto a = counting(1, 20), b = counting(100, 20);
  const auto first = x.begin(1, a, 0), second = x.begin(2, b, 0);
  REQUIRE(first);
  REQUIRE(second);
  CHECK(first->member != second->member);
  x.filled(1, a);
  x.filled(2, b);
  REQUIRE(x.prepare(1, 60));
  CHECK(x.begin(3, counting(300, 5), 0)->member == 0); // nobody new in the one that goes
  CHECK(x.copy_all() == 40);
  x.take_over(1, 60);
  for (const auto& [request, tokens] : {std::pair{1, a}, std::pair{2, b}}) {
    const auto again = x.resume(static_cast<uint64_t>(request), tokens + text{7});
    REQUIRE(again);
    CHECK(again->kept);
    CHECK(again->member == 0);
  }
  CHECK(x.usage().slots == std::vector<uint32_t>{60});
}

TEST_CASE(
    "L-M03 by request, a new table gets its share of the sequences, whatever ends meanwhile") {
  for (const bool one_ends : {false, true}) {
    CAPTURE(one_ends);
    moving_pool x{100, 2};
    std::map<uint64_t, text> all;
    for (uint64_t i = 1; i <= 4; ++i) {
      all[i] = counting(static_cast<token_id>(100 * i), 20);
      REQUIRE(x.begin(i, all[i], 0));
      x.filled(i, all[i]);
    }
    const auto before = x.usage().used;
    CHECK(before == std::vector<uint32_t>{40, 40});
    REQUIRE(x.prepare(3, 100));
    CHECK(x.begin(5, counting(900, 10), 0)->member < 2); // the new one is not there yet
    all[5] = counting(900, 10);
    x.filled(5, all[5]);
    CHECK(x.copy_all() == 90); // the members may be new, too: the mover knows
    if (one_ends)
      for (const uint64_t gone : {uint64_t{1}, uint64_t{2}}) {
        x.release(gone);
        all.erase(gone);
      }
    x.take_over(3, 100);
    std::map<uint32_t, uint32_t> slots;
    for (const auto& [request, tokens] : all) {
      const auto again = x.resume(request, tokens + text{7});
      REQUIRE(again);
      CHECK(again->kept);
      slots[again->member] += static_cast<uint32_t>(tokens.size());
    }
    if (!one_ends) CHECK(slots[2] == 20);
    for (const auto& [request, tokens] : all) x.release(request);
    CHECK(x.usage().used == std::vector<uint32_t>{0, 0, 0});
    CHECK(x.begin(6, counting(2000, 100), 0)); // a whole table, of any of them
    CHECK(x.begin(7, counting(3000, 100), 0));
    CHECK(x.begin(8, counting(4000, 100), 0));
  }
}

TEST_CASE("L-M03 by request, a share for a new table that is given up leaves nothing behind") {
  moving_pool x{60, 2};
  for (uint64_t i = 1; i <= 4; ++i) {
    const auto tokens = counting(static_cast<token_id>(100 * i), 20);
    REQUIRE(x.begin(i, tokens, 0));
    x.filled(i, tokens);
  }
  const auto before = x.usage();
  REQUIRE(x.prepare(3, 60));
  REQUIRE_FALSE(x.next(8).from.empty());
  x.done();
  caf::anon_send(x.allocator, kv_move_abort{x.epoch});
  x.settle();
  const auto after = x.usage();
  CHECK(after.used == before.used);
  CHECK(after.references == before.references);
}

TEST_CASE("V-M11 a further table is empty, and a larger one has more free slots") {
  moving_pool x{40};
  const auto a = counting(1, 20);
  REQUIRE(x.begin(1, a, 0));
  x.filled(1, a);
  REQUIRE(x.prepare(1, 90));
  CHECK(x.copy_all() == 20);
  x.take_over(1, 90);
  CHECK(x.resume(1, a + text{7})->kept);
  CHECK(x.usage().slots == std::vector<uint32_t>{90});
  CHECK(x.begin(2, counting(50, 60), 0));
}

TEST_CASE("L-M03 a move that is given up leaves nothing behind") {
  moving_pool x{100};
  const auto a = counting(1, 40);
  REQUIRE(x.begin(1, a, 0));
  x.filled(1, a);
  const auto before = x.usage();
  REQUIRE(x.prepare(1, 50));
  REQUIRE_FALSE(x.next(8).from.empty());
  caf::anon_send(x.allocator, kv_move_abort{x.epoch});
  x.settle();
  const auto after = x.usage();
  CHECK(after.used == before.used);
  CHECK(after.free == before.free);
  CHECK(x.begin(2, counting(100, 60), 0)); // all of the table again
}

TEST_CASE("L-M03 V-M12 of the prefix cache, what was copied is found in the next epoch") {
  moving_pool x{100, 1, 60s};
  const auto a = counting(1, 32);
  x.run(1, a);
  CHECK(x.cached() == 32);
  REQUIRE(x.prepare(1, 100));
  CHECK(x.copy_all() == 32);
  x.run(2, counting(500, 20)); // too late
  x.take_over(1, 100);
  CHECK(x.run(3, a + text{9, 8, 7}) == 32);
  CHECK(x.run(4, counting(500, 20)) == 0);
}

} // namespace lamella::actors::test
