#include "scheduler/pull_plan.hpp"

#include "scheduler/slot_pool.hpp"
#include "tests/random.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <stdexcept>

using namespace lamella::scheduler;

namespace {

/// The slot of each position.
std::vector<uint32_t> slots_of(const std::vector<slot_run>& runs) {
  std::vector<uint32_t> slots;
  for (const auto& run : runs)
    for (uint32_t i = 0; i < run.length; ++i) slots.push_back(run.first + i);
  return slots;
}

/// Runs that may touch each other, each of 1 to 9 slots, over `length` positions.
std::vector<slot_run> some_runs(lamella::tests::splitmix& random, uint32_t length) {
  std::vector<slot_run> runs;
  for (uint32_t at = static_cast<uint32_t>(random.below(50)); length > 0;) {
    const auto count = std::min(length, static_cast<uint32_t>(1 + random.below(9)));
    runs.push_back({at, count});
    length -= count;
    at += count + static_cast<uint32_t>(random.below(2) * random.below(20));
  }
  return runs;
}

} // namespace

TEST_CASE("S-M15 whether a pull is serialized follows from the prompt's length alone") {
  CHECK(pull_mode_of(1, 512) == pull_mode::serialized);
  CHECK(pull_mode_of(511, 512) == pull_mode::serialized);
  CHECK(pull_mode_of(512, 512) == pull_mode::layered);
  CHECK(pull_mode_of(100'000, 512) == pull_mode::layered);
  CHECK(pull_mode_of(1, 0) == pull_mode::layered);
}

TEST_CASE("S-M17 slots of positions are found, and runs that touch become one") {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    CAPTURE(seed);
    lamella::tests::splitmix random{seed};
    std::vector<slot_run> joined;
    std::vector<uint32_t> expected;
    for (int prompt = 0; prompt < 4; ++prompt) {
      const auto length = static_cast<uint32_t>(1 + random.below(60));
      const auto runs = some_runs(random, length);
      const auto first = static_cast<uint32_t>(random.below(length));
      const auto count = static_cast<uint32_t>(random.below(length - first + 1));
      append_positions(joined, runs, first, count);
      const auto slots = slots_of(runs);
      expected.insert(expected.end(), slots.begin() + first, slots.begin() + first + count);
    }
    CHECK(slots_of(joined) == expected);
    for (size_t i = 0; i < joined.size(); ++i) {
      CHECK(joined[i].length > 0);
      if (i > 0) CHECK(joined[i].first != joined[i - 1].first + joined[i - 1].length);
    }
  }
  std::vector<slot_run> none;
  const std::vector<slot_run> short_runs{{0, 4}};
  CHECK_THROWS_AS(append_positions(none, short_runs, 2, 3), std::logic_error);
}

TEST_CASE("S-M17 both sides of a pull cut the same rows into the same pieces") {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    CAPTURE(seed);
    lamella::tests::splitmix random{seed};
    const auto rows = static_cast<uint32_t>(random.below(300));
    const auto rows_max = static_cast<uint32_t>(1 + random.below(40));
    const auto here = some_runs(random, rows), there = some_runs(random, rows);
    const auto a = cut_rows(here, rows_max), b = cut_rows(there, rows_max);
    REQUIRE(a.pieces.size() == b.pieces.size());
    CHECK(a.pieces.size() == (rows + rows_max - 1) / rows_max);
    CHECK(slots_of(a.runs) == slots_of(here));
    uint32_t next_run = 0;
    for (size_t i = 0; i < a.pieces.size(); ++i) {
      const auto& x = a.pieces[i];
      CHECK(x.rows == b.pieces[i].rows);
      CHECK((x.rows == rows_max || i + 1 == a.pieces.size()));
      CHECK(x.first_run == next_run);
      next_run += x.run_count;
      uint32_t in_runs = 0;
      for (uint32_t r = 0; r < x.run_count; ++r) in_runs += a.runs[x.first_run + r].length;
      CHECK(in_runs == x.rows);
    }
    CHECK(next_run == a.runs.size());
  }
}

TEST_CASE("a piece has at least one row") {
  CHECK(piece_rows(100, 1000) == 10);
  CHECK(piece_rows(100, 199) == 1);
  CHECK(piece_rows(1000, 100) == 1);
}

TEST_CASE(
    "L-M28 nothing is granted or taken while Q, K or V wait; without any gap pulls still end") {
  pull_pacer pacer{4, 10};
  CHECK(pacer.may_step(false, 0));
  for (uint64_t receives = 0; receives < 10; ++receives)
    CHECK_FALSE(pacer.may_step(true, receives));
  CHECK(pacer.may_step(true, 10));       // one,
  CHECK_FALSE(pacer.may_step(true, 10)); // not two
  CHECK(pacer.may_step(false, 12));
  CHECK(pacer.may_step(false, 12)); // in a gap as many as fit
  CHECK_FALSE(pacer.may_step(true, 21));
  CHECK(pacer.may_step(true, 22));
  uint32_t steps = 0;
  for (uint64_t receives = 22; receives < 1022; ++receives)
    for (int look = 0; look < 5; ++look) steps += pacer.may_step(true, receives) ? 1 : 0;
  CHECK(steps == 99);
}

TEST_CASE("L-M28 no more pieces are under way than the window has") {
  const pull_pacer pacer{4};
  CHECK(pacer.grants(100, 0) == 4);
  CHECK(pacer.grants(100, 7) == 11);
  CHECK(pacer.grants(100, 97) == 100);
  CHECK(pacer.grants(2, 0) == 2);
  CHECK(pacer.grants(0, 0) == 0);
}
