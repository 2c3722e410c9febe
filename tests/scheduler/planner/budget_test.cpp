// What a budget of money or power buys.
#include "scheduler/planner/planner.hpp"

#include <doctest/doctest.h>

using namespace lamella::scheduler;

namespace {

plan_question question() {
  plan_question q;
  for (const char* name : {"H100-SXM", "H20"})
    q.menu.push_back(*find_device(built_in_devices(), name));
  q.host = {2e-3, 100e-6};
  return q;
}

} // namespace

TEST_CASE("S-M21 at equal cost the most tokens come of as many copies as the budget pays for") {
  const cost_model cost{*find_model(built_in_models(), "LLaMA3-70B")};
  const auto w = workload_of(uniform_trace(400, 1000, 100, 7));
  auto q = question();
  q.objective = plan_objective::throughput;
  q.usd_per_hour_max = 2 * 44.24; // two servers of four H100
  std::vector<plan_row> rows;
  for (const auto& d : enumerate_designs(q, cost)) rows.push_back(estimate(d, q, cost, w));
  rank(rows, q);
  REQUIRE(rows.front().ok());
  for (const auto& row : rows) {
    CHECK(row.tokens_per_s * row.copies
          <= doctest::Approx(rows.front().tokens_per_s * rows.front().copies)
                 .epsilon(row.ok() ? 1e-9 : 1e9));
    if (row.ok()) CHECK(row.usd_per_hour() <= q.usd_per_hour_max + 1e-6);
    if (row.ok()) CHECK(row.usd_per_hour() + row.design.usd_per_hour() > q.usd_per_hour_max);
  }
  decode_design d;
  d.compute = {q.menu[0], 4};
  CHECK(copies_within(q, d) == 2);
  // Where the least money or power is wanted, or a rate says how many, a budget is a limit alone.
  q.objective = plan_objective::cost;
  CHECK(copies_within(q, d) == 1);
  q.objective = plan_objective::throughput;
  q.rate = 1;
  CHECK(copies_within(q, d) == 1);
}

TEST_CASE("S-M21 at equal power a design may draw so much, all copies together") {
  const cost_model cost{*find_model(built_in_models(), "LLaMA3-70B")};
  const auto w = workload_of(uniform_trace(400, 1000, 100, 7));
  auto q = question();
  q.watts_max = 2000;
  decode_design d;
  d.compute = {q.menu[0], 4}; // 2800 W
  const auto row = estimate(d, q, cost, w);
  CHECK(row.misses == "2800 W, limit 2000 W");
  CHECK(row.miss == doctest::Approx(1.4));
  d.compute = {q.menu[1], 4}; // 1600 W
  CHECK(estimate(d, q, cost, w).ok());
  q.objective = plan_objective::throughput;
  q.watts_max = 4900;
  CHECK(estimate(d, q, cost, w).copies == 3);
}
