#include "scheduler/membership/slow_workers.hpp"

#include <doctest/doctest.h>

using namespace lamella::scheduler;
using namespace std::chrono_literals;

namespace {

constexpr auto model = worker_role::model, attention = worker_role::attention;

/// A worker that takes so long for each of its iterations, which have so many units.
work_report report(seat who, std::chrono::microseconds each, uint64_t iterations = 10,
                   uint64_t units_each = 8) {
  return {who, iterations, iterations * units_each, iterations * each};
}

/// Three shards, the last of which takes `times` as long.
std::vector<work_report> shards(double times, uint64_t iterations = 10) {
  const auto last = std::chrono::microseconds{static_cast<int64_t>(100 * times)};
  return {report({attention, 0}, 90us, iterations), report({attention, 1}, 100us, iterations),
          report({attention, 2}, last, iterations)};
}

} // namespace

TEST_CASE("A1 slow worker: more than three times its peers' median for 20 iterations in a row") {
  slow_workers all;
  CHECK(all.look(shards(2.9, 1000)).empty());
  CHECK(all.look(shards(2.9, 1000)).empty());
  CHECK(all.look(shards(3.5)).empty()); // 10 iterations
  const auto found = all.look(shards(3.5));
  REQUIRE(found.size() == 1);
  CHECK(found[0].who == seat{attention, 2});
  CHECK(found[0].slow);
  CHECK(found[0].times == doctest::Approx(3.5).epsilon(0.01));
  CHECK(all.slow({attention, 2}));
  CHECK_FALSE(all.slow({attention, 0}));
  CHECK(all.look(shards(3.5)).empty()); // told once
}

TEST_CASE("A1 slow worker: one look is not enough, and a good one in between starts over") {
  slow_workers all;
  CHECK(all.look(shards(9, 10'000)).empty());
  CHECK(all.look(shards(1)).empty());
  CHECK(all.look(shards(9, 10'000)).empty());
  CHECK(all.look(shards(9, 1)).size() == 1);
}

TEST_CASE("A1 slow worker: one that comes back as slow is told when it is well, as any other") {
  slow_workers all;
  all.assume_slow({attention, 2});
  CHECK(all.slow({attention, 2}));
  CHECK(all.look(shards(9, 20)).empty());
  CHECK(all.look(shards(9, 20)).empty()); // known
  CHECK(all.look(shards(1.5, 20)).empty());
  const auto well = all.look(shards(1.5, 20));
  REQUIRE(well.size() == 1);
  CHECK_FALSE(well[0].slow);
}

TEST_CASE("A1 slow worker: well again below twice, not in between") {
  slow_workers all;
  all.look(shards(9, 20));
  REQUIRE(all.look(shards(9, 20)).size() == 1);
  for (int i = 0; i < 10; ++i) CHECK(all.look(shards(2.5, 20)).empty());
  CHECK(all.slow({attention, 2}));
  CHECK(all.look(shards(1.5, 20)).empty());
  const auto well = all.look(shards(1.5, 20));
  REQUIRE(well.size() == 1);
  CHECK_FALSE(well[0].slow);
  CHECK_FALSE(all.slow({attention, 2}));
}

TEST_CASE("A1 slow worker: more work is not slowness, by whichever measure it shows") {
  slow_workers all;
  for (int i = 0; i < 10; ++i) {
    // 64 rows take ten times one row; a single row takes most of what eight do.
    CHECK(all.look({report({model, 0}, 10ms, 10, 64), report({model, 1}, 1ms, 10, 1)}).empty());
    CHECK(all.look({report({model, 0}, 1ms, 10, 8), report({model, 1}, 900us, 10, 1)}).empty());
  }
}

TEST_CASE("A1 slow worker: nobody is judged without peers at work, nor against another role") {
  slow_workers all;
  for (int i = 0; i < 10; ++i) {
    CHECK(all.look({report({model, 0}, 900ms)}).empty());
    CHECK(all.look({report({model, 0}, 900ms), report({attention, 0}, 1us)}).empty());
    CHECK(all.look({report({model, 0}, 900ms), work_report{{model, 1}, 0, 0, 0ns}}).empty());
  }
  // Cells with a device or threads of their own are as quick as these are.
  for (int i = 0; i < 10; ++i)
    CHECK(all.look({report({attention, 0}, 900us, 20), report({attention, 1, "far"}, 100us, 20)})
              .empty());
  // Of two, the slow one is known by the other.
  const std::vector<work_report> two{report({model, 0}, 900us, 20), report({model, 1}, 100us, 20)};
  CHECK(all.look(two).empty());
  REQUIRE(all.look(two).size() == 1);
  CHECK(all.slow({model, 0}));
}

TEST_CASE("A1 slow worker: whoever sits there next begins anew") {
  slow_workers all;
  all.look(shards(9, 20));
  all.look(shards(9, 20));
  CHECK(all.slow({attention, 2}));
  all.forget({attention, 2});
  CHECK_FALSE(all.slow({attention, 2}));
  CHECK(all.look(shards(9, 20)).empty());
}
