#include "scheduler/seat_table.hpp"
#include "tests/random.hpp"

#include <doctest/doctest.h>

#include <map>
#include <set>
#include <stdexcept>

using namespace lamella::scheduler;
using kind = seat_change::kind;

namespace {

/// What the test knows of a seat.
struct known {
  uint32_t member = 0;
  std::vector<uint32_t> slots;
};

std::vector<slot_run> random_runs(lamella::tests::splitmix& random) {
  std::vector<slot_run> runs(1 + random.below(3));
  for (auto& run : runs)
    run = {static_cast<uint32_t>(random.below(1000)), static_cast<uint32_t>(1 + random.below(54))};
  return runs;
}

void add_slots(known& to, const std::vector<slot_run>& runs) {
  for (const auto& run : runs)
    for (uint32_t i = 0; i < run.length; ++i) to.slots.push_back(run.first + i);
}

known seen(const seat_copy::entry& entry) {
  known result{entry.member, {}};
  add_slots(result, entry.runs);
  return result;
}

} // namespace

TEST_CASE("V-M14 a copy follows its owner through any changes, launch by launch") {
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    CAPTURE(seed);
    lamella::tests::splitmix random{seed};
    seat_table owner;
    seat_copy copy;
    std::map<uint32_t, known> truth;
    for (int launch = 0; launch < 100; ++launch) {
      CAPTURE(launch);
      const auto changes = random.below(5); // none in some launches
      for (uint64_t i = 0; i < changes; ++i) {
        const auto action = random.below(3);
        if (action == 0 || truth.empty()) {
          const auto runs = random_runs(random);
          const auto member = static_cast<uint32_t>(random.below(3));
          const auto seat = owner.join(member, runs);
          REQUIRE_FALSE(truth.contains(seat));
          for (uint32_t lower = 0; lower < seat; ++lower) CHECK(truth.contains(lower));
          truth[seat].member = member;
          add_slots(truth[seat], runs);
          continue;
        }
        auto at = std::next(truth.begin(), static_cast<ptrdiff_t>(random.below(truth.size())));
        if (action == 1) {
          const auto runs = random_runs(random);
          owner.extend(at->first, runs);
          add_slots(at->second, runs);
        } else {
          owner.leave(at->first);
          truth.erase(at);
        }
      }
      const auto [list, version] = owner.take_changes();
      copy.apply(list, version);
      REQUIRE(copy.size() == truth.size());
      for (const auto& [seat, wanted] : truth) {
        const auto got = seen(copy.at(seat));
        CHECK(got.member == wanted.member);
        CHECK(got.slots == wanted.slots);
      }
    }
  }
}

TEST_CASE("V-M14 a seat is the lowest that is free, and may be taken again at once") {
  seat_table owner;
  for (uint32_t expected : {0u, 1u, 2u}) CHECK(owner.join(0, {{expected, 1}}) == expected);
  owner.leave(1);
  CHECK(owner.join(0, {{7, 1}}) == 1); // leave and join in one launch
  seat_copy copy;
  const auto [list, version] = owner.take_changes();
  copy.apply(list, version);
  CHECK(copy.at(1).runs == std::vector<slot_run>{{7, 1}});
  CHECK(copy.size() == 3);
}

TEST_CASE("a sequence that grows in place stays one run in the copies") {
  seat_table owner;
  seat_copy copy;
  const auto seat = owner.join(0, {{54, 16}});
  for (uint32_t i = 1; i <= 17; ++i) {
    owner.extend(seat, {{54 + 16 * i, 16}});
    const auto [list, version] = owner.take_changes();
    copy.apply(list, version);
  }
  CHECK(copy.at(seat).runs == std::vector<slot_run>{{54, 16 * 18}});
}

TEST_CASE("a launch without changes keeps the version, and may be missed") {
  seat_table owner;
  CHECK(owner.take_changes().second == 0);
  owner.join(0, {{1, 1}});
  CHECK(owner.take_changes().second == 1);
  CHECK(owner.take_changes().second == 1);
  CHECK(owner.take_changes().first.empty());
}

TEST_CASE("a copy that misses a launch with changes says so at the next, with or without changes") {
  for (bool more : {false, true}) {
    CAPTURE(more);
    seat_table owner;
    seat_copy copy;
    const auto seat = owner.join(0, {{1, 1}});
    auto [first, version] = owner.take_changes();
    copy.apply(first, version);
    owner.extend(seat, {{7, 1}});
    owner.take_changes(); // lost on the way
    if (more) owner.extend(seat, {{17, 1}});
    auto [next, newer] = owner.take_changes();
    CHECK_THROWS_AS(copy.apply(next, newer), std::logic_error);
  }
}

TEST_CASE("a launch that comes twice is told from the next one") {
  seat_table owner;
  seat_copy copy;
  owner.join(0, {{1, 1}});
  auto [list, version] = owner.take_changes();
  copy.apply(list, version);
  CHECK_THROWS_AS(copy.apply(list, version), std::logic_error);
}

TEST_CASE("changes to seats that nobody has are refused") {
  seat_copy copy;
  const std::vector<seat_change> extend{{kind::extend, 7, 0, {{1, 1}}}};
  CHECK_THROWS_AS(copy.apply(extend, 1), std::logic_error);
  CHECK_THROWS_AS(copy.at(7), std::logic_error);
  seat_table owner;
  CHECK_THROWS_AS(owner.leave(7), std::logic_error);
}
