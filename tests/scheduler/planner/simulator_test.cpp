#include "scheduler/planner/simulator.hpp"

#include <doctest/doctest.h>

#include <algorithm>

using namespace lamella::scheduler;

namespace {

device_group of(uint32_t count, const char* name) {
  const auto* d = find_device(built_in_devices(), name);
  REQUIRE(d != nullptr);
  return {*d, count};
}

cost_model cost_of(const char* name) {
  const auto* m = find_model(built_in_models(), name);
  REQUIRE(m != nullptr);
  return cost_model{*m};
}

decode_design disaggregated(uint32_t a, uint32_t b) {
  decode_design d;
  d.compute = of(a, "H100-SXM");
  d.memory = of(b, "H20");
  return d;
}

decode_design homogeneous(uint32_t count) {
  decode_design d;
  d.compute = of(count, "H100-SXM");
  d.block_slots = d.window_slots = 16;
  return d;
}

} // namespace

TEST_CASE("V-M14 L-M29 all requests end, with all their tokens, in every design") {
  const auto trace = uniform_trace(700, 900, 170, 54);
  uint64_t tokens = 0;
  for (const auto& x : trace) tokens += x.output_tokens;
  const auto cost = cost_of("LLaMA-65B");
  auto by_request = disaggregated(2, 4);
  by_request.partition = partition_kind::requests;
  auto three = disaggregated(2, 4);
  three.batches = 3;
  three.replicas = 2;
  auto two_servers = homogeneous(4);
  two_servers.replicas = 2;
  for (const auto& d : {disaggregated(2, 4), by_request, three, homogeneous(4), two_servers})
    for (const auto load : {load_kind::saturated, load_kind::arrivals}) {
      INFO(describe(d));
      simulation_options o;
      o.load = load;
      const auto r =
          simulate(d, cost, load == load_kind::arrivals ? with_arrivals(trace, 3, 7) : trace, o);
      CHECK(r.requests == trace.size());
      // What was preempted continues where it was: no token twice.
      CHECK(r.tokens == tokens);
      CHECK(r.never_fit == 0);
      CHECK(r.e2e.count() == trace.size());
      CHECK(r.ttft.count() == trace.size());
    }
}

TEST_CASE(
    "Little's law: requests there are the rate times the stay, and tokens the batch per TBT") {
  for (const char* model : {"LLaMA-33B", "LLaMA3-70B"})
    for (const auto load : {load_kind::saturated, load_kind::arrivals}) {
      simulation_options o;
      o.load = load;
      const auto trace = with_arrivals(uniform_trace(1500, 1700, 54, 3), 8, 3);
      const auto r = simulate(disaggregated(1 + (model[5] == '3'), 4), cost_of(model), trace, o);
      CHECK(r.running_over_time == doctest::Approx(r.rate_times_stay).epsilon(0.01));
      CHECK(r.tokens_per_s * r.tbt.mean() == doctest::Approx(r.mean_batch).epsilon(0.01));
    }
}

TEST_CASE("V-M23 one batch of requests that come together costs what the closed form says") {
  auto design = disaggregated(2, 4);
  design.batches = 1;
  const auto cost = cost_of("LLaMA3-70B");
  const request_trace trace(17, {0, 1000, 100, {}});
  const auto r = simulate(design, cost, trace);
  double expected = 0;
  for (int i = 0; i < 100; ++i) expected += times_of(design, cost, 17, 17 * (1000.0 + i)).alone();
  CHECK(r.seconds == doctest::Approx(expected).epsilon(1e-9));
  CHECK(r.mean_batch == doctest::Approx(17));
}

TEST_CASE("L-M32 lengths are all that counts, and prompts come with their KV, in every design") {
  const auto cost = cost_of("LLaMA3-70B");
  for (auto d : {disaggregated(2, 4), homogeneous(4)}) {
    INFO(describe(d));
    d.batches = 1;
    request_trace trace{{0, 5000, 54, {}}};
    const auto r = simulate(d, cost, trace);
    double decoding = 0;
    for (int i = 0; i < 54; ++i) decoding += times_of(d, cost, 1, 5000.0 + i).alone();
    CHECK(r.seconds == doctest::Approx(decoding).epsilon(1e-9));
    trace[0].prefix_blocks = {7, 17, 54}; // what the prompt says
    CHECK(simulate(d, cost, trace).seconds == r.seconds);
    d.prefill_beside = true; // unless the design computes them
    CHECK(simulate(d, cost, trace).seconds > r.seconds + 0.9 * cost.prefill_s(d.compute, 5000));
  }
}

TEST_CASE("V-M16 S-M02 a bound of TBT cuts prompts beside decoding smaller, by the live composer") {
  const auto cost = cost_of("LLaMA3-70B");
  const auto trace = uniform_trace(400, 4000, 60, 7);
  auto d = disaggregated(2, 4);
  d.prefill_beside = true;
  d.chunk_tokens = 2048;
  const auto free = simulate(d, cost, trace);
  d.tbt_target_s = free.tbt.quantile(0.99) / 2;
  const auto bound = simulate(d, cost, trace);
  CHECK(bound.requests == free.requests);
  CHECK(bound.tbt.quantile(0.5) == doctest::Approx(d.tbt_target_s).epsilon(0.1));
  CHECK(bound.tbt.quantile(0.99) < 1.7 * d.tbt_target_s);    // two batches share the devices
  CHECK(bound.ttft.quantile(0.5) > free.ttft.quantile(0.5)); // what it costs
}

TEST_CASE("the same run twice is the same, and shuffling changes throughput by less than 3 %") {
  auto trace = uniform_trace(3000, 1000, 100, 7);
  for (size_t i = 0; i < trace.size(); i += 7) trace[i].prompt_tokens *= 5; // some are long
  const auto cost = cost_of("LLaMA-65B");
  const auto design = disaggregated(2, 4);
  const auto first = simulate(design, cost, trace);
  CHECK(simulate(design, cost, trace).tokens_per_s == first.tokens_per_s);
  for (const uint64_t seed : {1u, 2u, 3u})
    CHECK(simulate(design, cost, shuffled(trace, seed)).tokens_per_s
          == doctest::Approx(first.tokens_per_s).epsilon(0.03));
}

TEST_CASE("prices change dollars exactly, and nothing else") {
  const auto cost = cost_of("LLaMA3-70B");
  const auto trace = uniform_trace(500, 1000, 54, 7);
  auto design = disaggregated(2, 4);
  const auto a = simulate(design, cost, trace);
  const auto cheap = a.usd_per_mtok(design.usd_per_hour());
  CHECK(design.usd_per_hour() == doctest::Approx(40.64)); // L-Q13
  design.compute.kind.usd_per_hour *= 2;
  design.memory.kind.usd_per_hour *= 2;
  const auto b = simulate(design, cost, trace);
  CHECK(b.tokens_per_s == a.tokens_per_s);
  CHECK(b.usd_per_mtok(design.usd_per_hour()) == 2 * cheap);
}

TEST_CASE(
    "V-M13 more KV is promised than fits; what outgrows the pool is preempted and still ends") {
  auto design = homogeneous(2);
  design.kept_free_share = 0;
  const auto cost = cost_of("LLaMA-33B");
  const auto slots = slots_per_pool(design, cost);
  // Many short prompts that grow far: admission takes too many of them.
  const request_trace trace(static_cast<size_t>(slots / 40), {0, 16, 1500, {}});
  const auto r = simulate(design, cost, trace);
  CHECK(r.preemptions > 0);
  CHECK(r.requests == trace.size());
  CHECK(r.tokens == 1500 * trace.size());
}

TEST_CASE(
    "requests longer than the pool are counted and left out; a trace of nothing else is refused") {
  const auto cost = cost_of("LLaMA-33B");
  request_trace trace(7, {0, 100, 17, {}});
  trace[3].prompt_tokens = 9'000'000;
  const auto r = simulate(homogeneous(2), cost, trace);
  CHECK(r.never_fit == 1);
  CHECK(r.requests == 6);
  CHECK_THROWS_AS(simulate(homogeneous(2), cost, {{0, 9'000'000, 1, {}}}), std::invalid_argument);
  CHECK_THROWS_AS(simulate(homogeneous(1), cost_of("LLaMA3-70B"), trace), std::invalid_argument);
}

TEST_CASE(
    "L-M25 L-M26 a lost memory device costs recomputing, a lost compute device only the repair") {
  const auto cost = cost_of("LLaMA3-70B");
  const auto trace = uniform_trace(800, 1000, 100, 7);
  const auto design = disaggregated(2, 4);
  const auto quiet = simulate(design, cost, trace);
  simulation_options o;
  o.failures = {{2, false, 10}};
  const auto compute = simulate(design, cost, trace, o);
  o.failures = {{2, true, 10}};
  const auto memory = simulate(design, cost, trace, o);
  CHECK(compute.tokens == quiet.tokens);
  CHECK(memory.tokens == quiet.tokens);
  CHECK(compute.recomputed_tokens == 0);
  CHECK(memory.recomputed_tokens > 0);
  CHECK(compute.seconds == doctest::Approx(quiet.seconds + 10).epsilon(0.02));
  CHECK(memory.seconds > compute.seconds);
  CHECK(memory.tbt.max() > 10);
}

TEST_CASE("L-M07 host-driven network and V-M07 partition by request are never faster") {
  const auto cost = cost_of("LLaMA-65B");
  const auto trace = uniform_trace(600, 2000, 100, 17);
  auto design = disaggregated(2, 4);
  design.batches = 1;
  const auto best = simulate(design, cost, trace).tokens_per_s;
  auto host = design;
  host.network = network_kind::host;
  CHECK(simulate(host, cost, trace).tokens_per_s < best);
  auto requests = design;
  requests.partition = partition_kind::requests;
  CHECK(simulate(requests, cost, trace).tokens_per_s < best * 1.001);
  auto serial = design;
  serial.overlap = false;
  CHECK(simulate(serial, cost, trace).tokens_per_s < best);
}

TEST_CASE("more requests than a design can serve wait in the queue and outside it, and all end") {
  simulation_options o;
  o.load = load_kind::arrivals;
  const auto trace = with_arrivals(uniform_trace(3000, 900, 54, 17), 1000, 17);
  const auto r = simulate(disaggregated(2, 4), cost_of("LLaMA-65B"), trace, o);
  CHECK(r.requests == 3000);
  CHECK(r.ttft.quantile(0.9) > 10);
}
