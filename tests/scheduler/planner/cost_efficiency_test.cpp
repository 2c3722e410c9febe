// Lamina v1: what cheap memory devices are worth, and what a model costs on several devices.
#include "scheduler/planner/planner.hpp"

#include <doctest/doctest.h>

#include <algorithm>

using namespace lamella::scheduler;

namespace {

device gpu(const char* name) { return *find_device(built_in_devices(), name); }
cost_model cost_of(const char* name) { return cost_model{*find_model(built_in_models(), name)}; }

/// Best throughput per cost of all ratios of memory to computing devices, over that of the best
/// homogeneous design, when a dollar buys `alpha` times the memory in a memory device.
double best_gain(const cost_model& cost, double alpha, double context) {
  plan_question q;
  auto compute = gpu("A100-40G-SXM"), memory = compute;
  compute.usd_per_hour = 1;
  memory.name = "cheap memory";
  memory.flops /= 8; // V-M03: it only attends
  memory.usd_per_hour = 1 / alpha;
  q.menu = {compute, memory};
  workload w;
  w.context = w.prompt = context;
  w.output = 100;
  double same = 0, split = 0;
  for (const auto& d : enumerate_designs(q, cost)) {
    const bool swapped = d.compute.kind.name == memory.name;
    if (swapped || (d.disaggregated() && d.memory.kind.name != memory.name)) continue;
    const auto row = estimate(d, q, cost, w);
    if (row.ok()) {
      auto& best = d.disaggregated() ? split : same;
      best = std::max(best, 1 / row.usd_per_mtok);
    }
  }
  return split / same;
}

} // namespace

TEST_CASE("V-M01 V-M20 memory devices pay the more the cheaper their memory is") {
  const auto cost = cost_of("LLaMA-13B");
  const auto even = best_gain(cost, 1, 512), rtx = best_gain(cost, 3.27, 512),
             intel = best_gain(cost, 17.3, 512);
  MESSAGE("gain at alpha 1, 3.27, 17.3: ", even, " ", rtx, " ", intel);
  CHECK(even < rtx);
  CHECK(rtx < intel);
  CHECK(rtx > 1);
  CHECK(best_gain(cost, 0.2, 512) < 1); // dear memory never does
}

TEST_CASE(
    "V-M02 C05 what slows nothing down is 2 e d L MFU / N of the compute, and the stricter rule") {
  const auto cost = cost_of("LLaMA-65B");
  const auto& m = cost.model();
  const device_group four{gpu("A100-80G-SXM"), 4};
  for (const double rows : {1.0, 7.0, 128.0, 1024.0}) {
    const auto t = cost.model_s(four, rows) + cost.all_reduce_s(four, rows);
    const auto flops = 2 * m.parameters() * rows / t; // MFU times the peak
    CHECK(cost.bandwidth_no_slowdown(rows, t)
          == doctest::Approx(2 * m.element_bytes * m.hidden * m.layers * flops / m.parameters()));
    // Without groups both papers send as much: with alpha = 1 and no attention they agree.
    CHECK(cost.bandwidth_needed(rows, t, 0, 1)
          == doctest::Approx(cost.bandwidth_no_slowdown(rows, t)));
  }
}

TEST_CASE(
    "V-M03 L-M03 memory devices have the KV, computing devices the weights; each on its own") {
  const auto cost = cost_of("LLaMA3-70B");
  for (const uint32_t a : {2u, 4u, 8u})
    for (const uint32_t b : {1u, 2u, 4u, 8u}) {
      decode_design d;
      d.compute = {gpu("H100-SXM"), a};
      d.memory = {gpu("H20"), b};
      CHECK_FALSE(refuse(d, cost));
      decode_design one = d;
      one.compute.count = 2;
      one.memory.count = 1;
      CHECK(slots_per_pool(d, cost)
            == doctest::Approx(b * slots_per_pool(one, cost)).epsilon(1e-4));
      // One side changes only its own time.
      auto few_memory = d, few_compute = d;
      few_memory.memory.count = 1;
      few_compute.compute.count = 2;
      CHECK(times_of(d, cost, 17, 17'000).model == times_of(few_memory, cost, 17, 17'000).model);
      CHECK(times_of(d, cost, 17, 17'000).attention
            == times_of(few_compute, cost, 17, 17'000).attention);
    }
}

TEST_CASE("L-M18 L-M23 all memory devices serve one batch together: twice as many, half the time") {
  const auto cost = cost_of("LLaMA-65B");
  const auto gaps = cost.model().layers * cost.values().kernel_gap_us * 1e-6;
  const device_group two{gpu("H20"), 2}, four{gpu("H20"), 4};
  CHECK(cost.attention_s(two, 7, 70'000) - gaps
        == doctest::Approx(2 * (cost.attention_s(four, 7, 70'000) - gaps)));
}

TEST_CASE("V-M08 C06 attention begins with the first mini-batch: only that one's way is seen") {
  const auto cost = cost_of("LLaMA-13B");
  decode_design d;
  d.compute = {gpu("A100-40G-SXM"), 1};
  d.memory = {gpu("A100-40G-SXM"), 3};
  d.overlap = false;
  for (const double rows : {1.0, 54.0, 255.0, 1029.0})
    for (const uint32_t pieces : {1u, 2u, 3u, 7u}) {
      CAPTURE(rows);
      CAPTURE(pieces);
      d.mini_batches = pieces;
      const auto t = times_of(d, cost, rows, rows * 512);
      const auto path = cost.path(d.network, d.compute, d.memory);
      const auto trips = cost.model().layers * path.round_trip_s;
      // Played piece by piece: each arrives after the one before, and waits for its attention.
      double arrived = 0, attended = 0;
      for (uint32_t i = 0; i < pieces; ++i) {
        arrived += (t.network - trips) / pieces;
        attended = std::max(attended, arrived) + t.attention / pieces;
      }
      CHECK(t.alone() == doctest::Approx(t.model + trips + attended));
    }
  // Together with Q first it is never less than either.
  d.mini_batches = 3;
  const auto streamed = times_of(d, cost, 255, 255 * 512).hidden;
  d.overlap = true;
  const auto both = times_of(d, cost, 255, 255 * 512).hidden;
  d.mini_batches = 1;
  CHECK(both == std::max(streamed, times_of(d, cost, 255, 255 * 512).hidden));
}

TEST_CASE("V-M19 tensor parallelism divides reading and computing, and adds two sums per layer") {
  const auto cost = cost_of("LLaMA-65B");
  const auto& c = cost.values();
  const auto at = [&](uint32_t devices, double rows) {
    return cost.model_s({gpu("A100-80G-SXM"), devices}, rows);
  };
  for (const double rows : {1.0, 4096.0}) { // bound by reading, by computing
    CAPTURE(rows);
    const auto fixed =
        cost.model().layers * (c.matmul_kernels + c.elementwise_kernels) * c.kernel_gap_us * 1e-6;
    CHECK(at(4, rows) - fixed < (at(1, rows) - fixed) / 3.2);
    CHECK(at(4, rows) - fixed >= (at(1, rows) - fixed) / 4);
  }
  CHECK(cost.all_reduce_s({gpu("A100-80G-SXM"), 1}, 100) == 0);
  const device_group two{gpu("A100-80G-SXM"), 2}, four{gpu("A100-80G-SXM"), 4};
  // 2 (w - 1) / w of [rows, d], twice per layer, over each device's links.
  const auto flow = [&](const device_group& g) {
    return cost.all_reduce_s(g, 1'010'000) - cost.all_reduce_s(g, 10'000);
  };
  const auto bytes = 2.0 * cost.model().layers * cost.model().hidden * 2 * 1e6;
  CHECK(flow(two) == doctest::Approx(bytes / (two.kind.link_bandwidth * c.link_efficiency)));
  CHECK(flow(four) == doctest::Approx(1.5 * flow(two)));
}

TEST_CASE(
    "V-M21 V-M22 L-M31 sizes are of 16-bit weights and KV, for models with and without groups") {
  for (const auto& m : built_in_models()) {
    CHECK(m.element_bytes == 2);
    CHECK(m.heads % m.kv_heads == 0);
  }
  CHECK(cost_of("LLaMA-13B").model().kv_bytes_per_token() == 2 * 2 * 5120 * 40);
  CHECK(cost_of("LLaMA2-70B").model().group() == 8);
  CHECK(cost_of("LLaMA3-8B").model().group() == 4);
  CHECK(cost_of("BLOOM-176B").model().group() == 1);
}

TEST_CASE("V-M24 under arrivals throughput follows the rate, and latency grows with it") {
  const auto cost = cost_of("LLaMA-33B");
  decode_design d;
  d.compute = {gpu("A100-80G-SXM"), 2};
  d.memory = {gpu("A100-40G-SXM"), 4};
  double before = 0;
  for (const double rate : {0.5, 2.0, 8.0}) {
    simulation_options o;
    o.load = load_kind::arrivals;
    const auto r = simulate(d, cost, with_arrivals(uniform_trace(400, 200, 170, 7), rate, 7), o);
    CHECK(r.e2e.mean() > before);
    before = r.e2e.mean();
    CHECK(r.tokens_per_s <= rate * 170 * 1.15);
    if (rate < 1) CHECK(r.tokens_per_s > rate * 170 * 0.85);
  }
}

TEST_CASE("S-M21 cost, power and throughput each have a best of their own") {
  plan_question q;
  q.menu = {gpu("H100-SXM"), gpu("H20")};
  plan_row cheap, frugal, fast;
  cheap.usd_per_mtok = 1, cheap.joules_per_token = 9, cheap.tokens_per_s = 100;
  frugal.usd_per_mtok = 2, frugal.joules_per_token = 3, frugal.tokens_per_s = 100;
  fast.usd_per_mtok = 3, fast.joules_per_token = 8, fast.tokens_per_s = 900;
  const auto best = [&](plan_objective objective) {
    q.objective = objective;
    std::vector<plan_row> rows{fast, cheap, frugal};
    rank(rows, q);
    return rows.front().usd_per_mtok;
  };
  CHECK(best(plan_objective::cost) == 1);
  CHECK(best(plan_objective::power) == 2);
  CHECK(best(plan_objective::throughput) == 3);
}
