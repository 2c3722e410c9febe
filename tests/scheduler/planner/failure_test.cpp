// Devices that die in simulated runs: who waits for them, for how long, and what is lost.
#include "scheduler/planner/simulator.hpp"

#include <doctest/doctest.h>

using namespace lamella::scheduler;

namespace {

device_group of(uint32_t count, const char* name) {
  return {*find_device(built_in_devices(), name), count};
}

cost_model cost_of(const char* name) { return cost_model{*find_model(built_in_models(), name)}; }

decode_design servers(uint32_t count) {
  decode_design d;
  d.compute = of(4, "H100-SXM");
  d.replicas = count;
  d.block_slots = d.window_slots = 16;
  return d;
}

} // namespace

TEST_CASE("L-M26 of independent servers only the one that lost a device waits and computes again") {
  const auto cost = cost_of("LLaMA3-70B");
  const request_trace trace(40, {0, 1000, 2000, {}});
  simulation_options o;
  o.load = load_kind::arrivals;
  const auto quiet = simulate(servers(2), cost, trace, o);
  o.failures = {{quiet.seconds / 2, false, 10}};
  const auto r = simulate(servers(2), cost, trace, o);
  CHECK(r.failures == 1);
  CHECK(r.tokens == quiet.tokens);
  // Half of the requests were on the other server, and lost nothing.
  CHECK(r.recomputed_tokens > 20 * 1900);
  CHECK(r.recomputed_tokens < 20 * 2100);
  CHECK(r.e2e.quantile(0.49) == doctest::Approx(quiet.e2e.quantile(0.49)).epsilon(0.001));
  const auto again = 20 * cost.prefill_s(servers(1).compute, 2000);
  CHECK(r.seconds == doctest::Approx(quiet.seconds + 10 + again).epsilon(0.01));
}

TEST_CASE("L-M26 by request, a memory device takes the KV of its own requests along") {
  const auto cost = cost_of("LLaMA3-70B");
  const request_trace trace(40, {0, 1000, 500, {}});
  decode_design d;
  d.compute = of(2, "H100-SXM");
  d.memory = of(4, "H20");
  simulation_options o;
  o.failures = {{1, true, 10}};
  const auto by_head = simulate(d, cost, trace, o);
  d.partition = partition_kind::requests;
  const auto by_request = simulate(d, cost, trace, o);
  CHECK(by_request.recomputed_tokens
        == doctest::Approx(by_head.recomputed_tokens / 4.0).epsilon(0.05));
}

TEST_CASE("L-M25 in a fixed pipeline a lost replica holds up its own batches, in a rotation all") {
  const auto cost = cost_of("LLaMA-33B");
  const request_trace trace(60, {0, 500, 400, {}});
  decode_design d;
  d.compute = of(1, "H100-SXM");
  d.memory = of(2, "H20");
  d.replicas = 2;
  d.batches = 3;
  simulation_options o;
  o.failures = {{0.5, false, 20}};
  const auto rotating = simulate(d, cost, trace, o);
  CHECK(rotating.recomputed_tokens == 0);
  CHECK(rotating.e2e.quantile(0.01) > 20);
  d.pipeline = pipeline_kind::fixed;
  const auto fixed = simulate(d, cost, trace, o);
  CHECK(fixed.e2e.quantile(0.01) < 20); // of the batch on the other replica
  CHECK(fixed.e2e.quantile(0.99) > 20);
}

TEST_CASE("what fails while nothing runs, and is back before the next request, delays nobody") {
  const auto cost = cost_of("LLaMA3-70B");
  const request_trace trace{{0, 1000, 10, {}}, {100, 1000, 10, {}}};
  simulation_options o;
  o.load = load_kind::arrivals;
  const auto quiet = simulate(servers(1), cost, trace, o);
  o.failures = {{50, false, 20}};
  const auto r = simulate(servers(1), cost, trace, o);
  CHECK(r.failures == 1);
  CHECK(r.recomputed_tokens == 0);
  CHECK(r.seconds == quiet.seconds);
  CHECK(r.e2e.max() == quiet.e2e.max());
  // One that is still missed then holds it up until it is there, and not longer.
  o.failures = {{95, false, 20}};
  CHECK(simulate(servers(1), cost, trace, o).seconds == doctest::Approx(quiet.seconds + 15));
  // One that comes when all is over has not been.
  o.failures = {{500, false, 20}};
  CHECK(simulate(servers(1), cost, trace, o).failures == 0);
}

TEST_CASE("an iteration that is under way when a device dies goes on when it is back") {
  const auto cost = cost_of("LLaMA3-70B");
  const request_trace trace{{0, 1000, 10, {}}};
  decode_design d;
  d.compute = of(2, "H100-SXM");
  d.memory = of(4, "H20");
  const auto quiet = simulate(d, cost, trace);
  simulation_options o;
  o.failures = {{quiet.seconds / 2, false, 7}};
  const auto r = simulate(d, cost, trace, o);
  CHECK(r.seconds == doctest::Approx(quiet.seconds + 7));
  CHECK(r.tbt.max() > 7);
  CHECK(r.running_over_time == doctest::Approx(r.rate_times_stay).epsilon(1e-6));
}
