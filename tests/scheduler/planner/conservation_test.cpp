// Sums that must come out whatever the design: every gap between tokens is in TBT, shares of time
// stay within it, and nothing passes a network that is not there.
#include "scheduler/planner/simulator.hpp"

#include <doctest/doctest.h>

using namespace lamella::scheduler;

namespace {

device_group of(uint32_t count, const char* name) {
  return {*find_device(built_in_devices(), name), count};
}

cost_model cost_of(const char* name) { return cost_model{*find_model(built_in_models(), name)}; }

/// So little memory that requests give their slots up and wait.
decode_design crowded() {
  decode_design d;
  d.compute = of(2, "H100-SXM");
  d.block_slots = d.window_slots = 16;
  d.kept_free_share = 0;
  return d;
}

/// Many short prompts that grow far: admission takes too many of them.
request_trace growing(const decode_design& d, const cost_model& cost) {
  return request_trace(static_cast<size_t>(slots_per_pool(d, cost) / 400), {0, 16, 1000, {}});
}

} // namespace

TEST_CASE("S-M01 TTFT and all gaps between tokens of a request are its E2E, preempted or not") {
  const auto cost = cost_of("LLaMA-33B");
  simulation_options o;
  o.load = load_kind::arrivals;
  for (const bool beside : {false, true})
    for (const bool fails : {false, true}) {
      CAPTURE(beside);
      CAPTURE(fails);
      auto d = crowded();
      d.prefill_beside = beside;
      d.prefill_servers = !beside;
      d.prefill = of(2, "H100-SXM");
      o.failures.clear();
      if (fails) o.failures = {{5, false, 3}};
      const auto trace = growing(d, cost);
      const auto r = simulate(d, cost, trace, o);
      CHECK(r.preemptions > 0);
      CHECK(r.requests == trace.size());
      CHECK(r.tbt.count() == r.tokens - r.requests);
      CHECK(r.ttft.sum() + r.tbt.sum() == doctest::Approx(r.e2e.sum()).epsilon(1e-9));
    }
}

TEST_CASE("who gave its slots up has waited for its next token, prompts with their KV or not") {
  const auto cost = cost_of("LLaMA-33B");
  const auto d = crowded();
  const auto trace = growing(d, cost);
  simulation_options o;
  o.load = load_kind::arrivals;
  const auto r = simulate(d, cost, trace, o);
  CHECK(r.preemptions > 0);
  CHECK(r.tbt.count() == r.tokens);
  // All came at once: from there to its end a request waits, or gets tokens.
  const auto first = r.ttft.sum() + r.tbt.sum() - r.e2e.sum(); // these iterations are in both
  CHECK(first > 0);
  CHECK(first < 0.2 * static_cast<double>(trace.size())); // of one iteration each
  CHECK(r.tbt.max() > 1);
}

TEST_CASE("no network is used where there is none, and none is busier than always") {
  const auto cost = cost_of("LLaMA3-70B");
  const auto trace = uniform_trace(600, 1000, 100, 7);
  decode_design d;
  d.compute = of(4, "H100-SXM");
  CHECK(simulate(d, cost, trace).wire_bytes_per_s == 0);
  d.compute.count = 2;
  d.memory = of(4, "H20");
  const auto r = simulate(d, cost, trace);
  CHECK(r.wire_bytes_per_s
        == doctest::Approx(r.tokens_per_s * cost.model().wire_bytes_per_row()).epsilon(0.01));
}

TEST_CASE("L-M03 replicas that come and go are busy for as long as they were there") {
  const auto cost = cost_of("LLaMA3-70B");
  const auto trace = uniform_trace(2000, 1000, 100, 7);
  decode_design d;
  d.compute = of(4, "H100-SXM");
  d.replicas = 4;
  d.block_slots = d.window_slots = 16;
  const auto quiet = simulate(d, cost, trace);
  simulation_options o;
  o.scalings = {{0.8 * quiet.seconds, false, -3}};
  const auto r = simulate(d, cost, trace, o);
  CHECK(r.scalings == 1);
  CHECK(r.model_busy <= 1.001);
  CHECK(r.model_busy > 0.5 * quiet.model_busy);
}
