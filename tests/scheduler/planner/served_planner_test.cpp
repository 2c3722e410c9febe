// Whether a measured service does, and how many of it.
#include "scheduler/planner/served_planner.hpp"

#include <doctest/doctest.h>

using namespace lamella::scheduler;

namespace {

/// Iterations of 10 ms and 1 ms more per request; chunks of 1 ms per token; both at half their
/// speed beside each other.
served_profile measured() {
  served_profile p;
  p.model = "m";
  p.kernels = "k";
  p.threads = 1;
  p.limits = {100'000, 32, 100, 32, 4096};
  p.decode = {{1, 10, 11e-3}, {32, 10, 42e-3}};
  p.prefill = {{50, 50e-3}, {100, 100e-3}};
  p.sharing = {{1, 0.5, 0.5}};
  return p;
}

const request_trace trace = uniform_trace(400, 50, 100, 3);

plan_question asking(latency_metric metric, double quantile, double limit_s, double rate = 0) {
  plan_question q;
  q.limits = {{metric, quantile, limit_s}};
  q.rate = rate;
  return q;
}

} // namespace

TEST_CASE("S-M20 without limits the measured service is taken as it is") {
  const auto plan = plan_served(measured(), {}, trace);
  CHECK(plan.ok());
  CHECK(plan.seats == 32);
  CHECK(plan.copies == 1);
  CHECK(plan.tokens_per_s == doctest::Approx(simulate_served(measured(), trace).tokens_per_s));
}

TEST_CASE("S-M20 a limit on the time between tokens costs seats, not copies") {
  const auto full = plan_served(measured(), {}, trace);
  const auto limit = full.result.tbt.quantile(0.5) * 0.6;
  const auto plan = plan_served(measured(), asking(latency_metric::tbt, 0.5, limit), trace);
  CHECK(plan.ok());
  CHECK(plan.seats < 32);
  CHECK(plan.copies == 1);
  CHECK(plan.result.tbt.quantile(0.5) <= limit);
  CHECK(plan.tokens_per_s < full.tokens_per_s);
}

TEST_CASE("S-M20 a rate costs copies, in proportion") {
  const auto one = plan_served(measured(), {}, trace);
  for (const double times : {0.5, 3.5, 7.2}) {
    CAPTURE(times);
    plan_question q;
    q.rate = times * one.tokens_per_s / 100;
    const auto plan = plan_served(measured(), q, trace);
    CHECK(plan.copies >= times);
    CHECK(plan.copies <= times + 1.2); // sizes are drawn: their mean is not quite 100
  }
}

TEST_CASE("S-M20 a limit on the first token costs more copies; one that nothing meets is told") {
  const auto one = plan_served(measured(), {}, trace);
  const auto rate = 0.95 * one.tokens_per_s / 100;
  const auto waiting =
      plan_served(measured(), asking(latency_metric::ttft, 0.99, 1e9, rate), trace);
  const auto limit = waiting.result.ttft.quantile(0.99) / 3;
  const auto plan = plan_served(measured(), asking(latency_metric::ttft, 0.99, limit, rate), trace);
  CHECK(plan.ok());
  CHECK(plan.copies > waiting.copies);
  const auto never = plan_served(measured(), asking(latency_metric::tbt, 0.99, 1e-3), trace);
  CHECK(!never.ok());
  CHECK(never.misses.find("limit 1 ms") != std::string::npos);
  CHECK(never.seats >= 1);
}
