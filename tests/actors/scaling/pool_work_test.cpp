// What the workers of each pool did lately, from their reports.
#include "actors/protocol/status.hpp"
#include "actors/scaling/pool_work.hpp"

#include <doctest/doctest.h>

#include <chrono>

namespace lamella::actors::test {

using namespace std::chrono_literals;

TEST_CASE("The work of a pool is that of the workers that were there before, too") {
  using namespace std::chrono_literals;
  pool_work work{10s};
  const pool_work::time_point start{1h};
  const auto note = [&](std::chrono::seconds at, std::vector<std::pair<uint32_t, work_done>> all) {
    system_status status;
    for (size_t i = 0; i < all.size(); ++i) {
      worker_info x;
      x.role = "attention";
      x.seat = "attention/" + std::to_string(i);
      x.incarnation = all[i].first;
      x.work = all[i].second;
      status.workers.push_back(x);
    }
    work.note(start + at, status);
  };
  note(0s, {{1, {100, 0, 0}}, {1, {100, 0, 0}}});
  CHECK(work.of("attention", 2).busy < 0);
  note(10s, {{1, {200, 0, 2'000'000'000}}, {1, {200, 0, 4'000'000'000}}});
  CHECK(work.of("attention", 2).busy == doctest::Approx(0.3));
  CHECK(work.of("attention", 2).mean.count() == doctest::Approx(0.03));
  CHECK(work.of("attention", 2).most.count() == doctest::Approx(0.04));
  CHECK(work.of("model", 1).mean.count() == 0);
  note(20s, {{2, {50, 0, 9'000'000'000}}, {1, {300, 0, 5'000'000'000}}}); // one is another process
  CHECK(work.of("attention", 2).mean.count() == doctest::Approx(0.01));
}

} // namespace lamella::actors::test
