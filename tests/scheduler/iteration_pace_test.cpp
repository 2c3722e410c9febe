#include "scheduler/iteration_pace.hpp"

#include <doctest/doctest.h>

#include <vector>

using namespace lamella::scheduler;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;

namespace {

/// Iterations as a machine runs them that takes `fixed` ms for each and `unit` ms for a unit, each
/// of as much work as the pace allows, up to `most`. The works of the last ones.
std::vector<uint64_t> runs(double fixed, double unit, milliseconds target, uint64_t most,
                           int count = 60) {
  iteration_pace pace;
  std::vector<uint64_t> works;
  for (int i = 0; i < count; ++i) {
    const auto work = std::max<uint64_t>(16, std::min(pace.work_within(target), most));
    pace.add(work, nanoseconds{static_cast<int64_t>((fixed + unit * double(work)) * 1e6)});
    if (i >= count / 2) works.push_back(work);
  }
  return works;
}

} // namespace

TEST_CASE("before the first iteration nothing is known, and nothing is bounded") {
  iteration_pace pace;
  CHECK(pace.unit_ns() == 0);
  CHECK(pace.work_within(milliseconds{1}) == std::numeric_limits<uint64_t>::max());
}

TEST_CASE("a fast machine runs whole chunks, a slow one what fits into the time") {
  for (const auto work : runs(1, 0.01, milliseconds{60}, 512)) CHECK(work == 512);
  for (const auto work : runs(1, 1, milliseconds{60}, 4096)) {
    CHECK(work >= 40);
    CHECK(work <= 64);
  }
}

TEST_CASE("no bound makes iterations so small that their fixed cost is most of them") {
  // 40 ms are fixed: within 60 ms, 20 units would take three times as long for each as 1000 do.
  for (const auto work : runs(40, 1, milliseconds{60}, 1024)) {
    CHECK(work >= 64);
    CHECK((40 + double(work)) / double(work) < 2.0);
  }
}

TEST_CASE("a machine that becomes slower gets smaller iterations, and larger ones again") {
  iteration_pace pace;
  const auto run = [&](double unit) {
    uint64_t work = 0;
    for (int i = 0; i < 100; ++i) {
      work = std::min<uint64_t>(pace.work_within(milliseconds{60}), 512);
      pace.add(work, nanoseconds{static_cast<int64_t>(unit * double(work) * 1e6)});
    }
    return work;
  };
  CHECK(run(0.1) == 512);
  const auto slow = run(1);
  CHECK(slow >= 32);
  CHECK(slow <= 128);
  CHECK(run(0.1) >= 400);
}
