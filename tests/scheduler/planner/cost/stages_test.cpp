// Pipeline parallelism: replicas whose layers lie on several groups of devices, one after the
// other.
#include "scheduler/planner/cost/stages.hpp"
#include "scheduler/planner/planner.hpp"
#include "scheduler/planner/simulator.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

using namespace lamella::scheduler;

namespace {

device_group of(uint32_t count, const char* name) {
  return {*find_device(built_in_devices(), name), count};
}

cost_model cost_of(const char* name) { return cost_model{*find_model(built_in_models(), name)}; }

decode_design server(uint32_t tensor_parallel, uint32_t stages) {
  decode_design d;
  d.compute = of(tensor_parallel, "H100-SXM");
  d.stages = stages;
  d.block_slots = d.window_slots = 16;
  return d;
}

decode_design staged(uint32_t stages, uint32_t batches) {
  decode_design d;
  d.compute = of(2, "H100-SXM");
  d.memory = of(4, "H20");
  d.stages = stages;
  d.batches = batches;
  return d;
}

} // namespace

TEST_CASE("V-M04 every layer has one stage, in order, and stages differ by one layer at most") {
  for (const uint32_t layers : {1u, 2u, 30u, 61u, 80u})
    for (uint32_t stages = 1; stages <= std::min(layers, 9u); ++stages) {
      CAPTURE(layers);
      CAPTURE(stages);
      std::vector<uint32_t> count(stages);
      uint32_t before = 0;
      for (uint32_t k = 0; k < layers; ++k) {
        const auto s = stage_of(k, layers, stages);
        REQUIRE(s < stages);
        CHECK(s >= before);
        before = s;
        ++count[s];
      }
      const auto [least, most] = std::minmax_element(count.begin(), count.end());
      CHECK(*most - *least <= 1);
      CHECK(fullest_stage(layers, stages) == doctest::Approx(double(*most) / layers));
    }
}

TEST_CASE("V-M04 a request alone passes all stages: the same work, and sends between them") {
  const auto cost = cost_of("LLaMA3-70B");
  for (const uint32_t stages : {2u, 4u}) {
    const auto whole = times_of(server(4, 1), cost, 1, 1000),
               parts = times_of(server(4, stages), cost, 1, 1000);
    CHECK(parts.model == whole.model);
    CHECK(parts.stage == doctest::Approx(whole.model / stages));
    const auto path = cost.path(network_kind::host, server(4, 1).compute, server(4, 1).compute);
    const auto row = cost.model().hidden * cost.model().element_bytes;
    // Rows go to the next stage, a token's number back to the first.
    CHECK(parts.alone() - whole.alone()
          == doctest::Approx(stages * path.round_trip_s / 2 + (stages - 1) * row / path.bandwidth));
  }
}

TEST_CASE(
    "V-M04 the closed form agrees with the layer-by-layer run, stages full or with a bubble") {
  const auto cost = cost_of("LLaMA3-70B");
  for (const uint32_t stages : {2u, 4u})
    for (uint32_t batches = 2; batches <= stages + 1; ++batches)
      for (const double rows : {4.0, 40.0, 200.0}) {
        CAPTURE(stages);
        CAPTURE(batches);
        CAPTURE(rows);
        const auto t = times_of(staged(stages, batches), cost, rows, rows * 3000);
        const std::vector<iteration_times> all(batches, t);
        const auto closed = iteration_s(all, 0, 1, pipeline_kind::rotational);
        const auto played =
            play_staggered(all, 1, pipeline_kind::rotational, cost.model().layers, 60, stages);
        CHECK(played.iteration_s == doctest::Approx(closed).epsilon(0.06));
      }
}

TEST_CASE("V-M04 weights that no group holds whole fit in stages, the fullest decides of the KV") {
  const auto cost = cost_of("BLOOM-176B");
  REQUIRE(refuse(server(4, 1), cost));
  CHECK_FALSE(refuse(server(4, 2), cost));
  const auto one = cost.kv_tokens(server(8, 1).compute, cost.model().weight_bytes);
  CHECK(slots_per_pool(server(4, 2), cost) == doctest::Approx(one).epsilon(0.001)); // 35 and 35
  // 70 layers over 4 stages are 18 in the fullest, not 17.5.
  const auto even = cost.kv_tokens(server(8, 1).compute, 352.5e9 / 2) * 2;
  CHECK(slots_per_pool(server(4, 4), cost) < even);
  CHECK(refuse(server(4, 71), cost)->find("70 layers") != std::string::npos);
  auto d = staged(2, 4);
  CHECK(refuse(d, cost_of("LLaMA-65B"))->find("3 stages of replicas, not 2") != std::string::npos);
}

TEST_CASE("V-M04 L-M29 all requests end in designs with stages, and Little's law holds") {
  const auto cost = cost_of("LLaMA3-70B");
  const auto trace = with_arrivals(uniform_trace(500, 1500, 54, 7), 20, 7);
  uint64_t tokens = 0;
  for (const auto& x : trace) tokens += x.output_tokens;
  auto two = server(2, 2);
  two.replicas = 2;
  auto beside = two;
  beside.prefill_beside = true;
  for (const auto& d : {server(4, 2), two, beside, staged(2, 2), staged(2, 3)})
    for (const auto load : {load_kind::saturated, load_kind::arrivals}) {
      INFO(describe(d));
      simulation_options o;
      o.load = load;
      o.failures = {{3, false, 2}};
      o.scalings = {{4, false, 1}, {8, false, -1}};
      const auto r = simulate(d, cost, trace, o);
      CHECK(r.requests == trace.size());
      CHECK(r.tokens == tokens);
      CHECK(r.running_over_time == doctest::Approx(r.rate_times_stay).epsilon(0.01));
      CHECK(r.model_busy <= 1.001);
    }
}

TEST_CASE(
    "V-M04 as many batches as stages, and one more at attention, leave no stage without work") {
  const auto cost = cost_of("LLaMA-65B");
  const auto trace = uniform_trace(1200, 1000, 100, 7);
  const auto bubble = simulate(staged(2, 2), cost, trace),
             full = simulate(staged(2, 3), cost, trace);
  CHECK(bubble.model_busy < 0.75); // a stage idles while its batch is at attention
  CHECK(full.model_busy > 1.2 * bubble.model_busy);
  // A server's stages have a batch each.
  const auto same = simulate(server(4, 2), cost, trace);
  CHECK(same.model_busy > 0.8);
}

TEST_CASE("V-M04 stages instead of tensor parallelism cost latency and save all-reduces") {
  const auto cost = cost_of("LLaMA3-70B");
  const auto wide = times_of(server(8, 1), cost, 64, 64 * 1000.0),
             deep = times_of(server(4, 2), cost, 32, 32 * 1000.0);
  CHECK(cost.all_reduce_s(of(4, "H100-SXM"), 32) < cost.all_reduce_s(of(8, "H100-SXM"), 64));
  const std::vector<iteration_times> both(2, deep);
  CHECK(iteration_s(both, 0, 1, pipeline_kind::fixed) > wide.alone());
}

TEST_CASE("V-M04 L-M33 the search knows stages, and estimates them as they are simulated") {
  const auto cost = cost_of("LLaMA3-70B");
  plan_question q;
  q.stages_max = 4;
  for (const char* name : {"H100-SXM", "H20"})
    q.menu.push_back(*find_device(built_in_devices(), name));
  const auto trace = uniform_trace(2500, 1000, 100, 7);
  auto none = q;
  none.stages_max = 1; // unless asked for
  for (const auto& d : enumerate_designs(none, cost)) CHECK(d.stages == 1);
  int same = 0, split = 0;
  for (const auto& d : enumerate_designs(q, cost)) {
    CHECK(d.devices() <= q.devices_max);
    if (d.stages == 1 || d.compute.count != 4 || d.compute.nics + d.memory.nics > 0
        || (d.disaggregated() && d.memory.count != 8))
      continue;
    INFO(describe(d));
    ++(d.disaggregated() ? split : same);
    const auto guess = estimate(d, q, cost, workload_of(trace));
    const auto r = evaluate(guess, q, cost, trace);
    if (r.bound.starts_with("KV memory"))
      CHECK(r.tokens_per_s == doctest::Approx(guess.tokens_per_s).epsilon(0.12));
  }
  CHECK(same >= 2);
  CHECK(split >= 2);
}
