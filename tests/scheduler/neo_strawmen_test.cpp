// What NEO's two batches are made of, and the simpler ways to use the host that it is compared
// with.
#include "scheduler/neo.hpp"

#include <doctest/doctest.h>

#include <algorithm>

using namespace lamella::scheduler;

namespace {

struct bench {
  cost_model cost{*find_model(built_in_models(), "LLaMA3-8B")};
  neo_machine machine;
  bench() {
    machine.gpu = {*find_device(built_in_devices(), "A10G"), 1};
    machine.gpu_kv_tokens = 26'400;
    machine.host_kv_tokens = 200'000;
    machine.host_bandwidth = 50e9;
    machine.batch_tokens_max = 20'480;
  }
  neo_iteration plan(neo_state s, offload_kind kind) const {
    double swapped = 0;
    return plan_iteration(s, machine, cost, kind, swapped);
  }
  neo_result play(const request_trace& trace, offload_kind kind) const {
    return simulate_neo(machine, cost, kind, trace);
  }
};

neo_state state_of(uint32_t gpu, uint32_t host, uint32_t waiting, uint32_t context) {
  neo_state s;
  uint32_t i = 0;
  for (uint32_t k = 0; k < gpu; ++k) s.on_gpu.push_back({i++, context, 50});
  for (uint32_t k = 0; k < host; ++k) s.on_host.push_back({i++, context, 50});
  for (uint32_t k = 0; k < waiting; ++k) s.waiting.push_back({i++, context, 50});
  return s;
}

} // namespace

TEST_CASE("N-M08 two batches begin empty: without requests there is nothing in them") {
  const auto it = bench{}.plan({}, offload_kind::neo);
  CHECK(it.batch_0.empty());
  CHECK(it.batch_1.empty());
  CHECK(it.gpu_prefills.empty());
  CHECK(it.host_prefills.empty());
  CHECK(it.sequences == 0);
}

TEST_CASE(
    "N-M04 prompts for the host leave layer by layer: only what PCIe cannot keep up with costs") {
  bench b;
  b.machine.gpu_kv_tokens = 0;
  const auto trace = uniform_trace(60, 1000, 20, 7);
  const auto wide = b.play(trace, offload_kind::full);
  b.machine.pcie_bandwidth *= 2;
  CHECK(b.play(trace, offload_kind::full).seconds == wide.seconds); // hidden already
  b.machine.pcie_bandwidth = 1e8;
  CHECK(b.play(trace, offload_kind::full).seconds > 1.5 * wide.seconds);
}

TEST_CASE("N-M11 a request that cannot be hidden is skipped, and with it all that are as long") {
  const bench b;
  auto s = state_of(0, 0, 0, 0);
  for (uint32_t i = 0; i < 12; ++i) s.on_host.push_back({i, i == 3 ? 150'000u : 700u, 50});
  s.on_host.push_back({12, 150'000, 50});
  s.on_gpu.push_back({13, 26'000, 50}); // the GPU has no room to take them back
  const auto it = b.plan(s, offload_kind::full);
  std::vector<uint32_t> taken = it.batch_0;
  taken.insert(taken.end(), it.batch_1.begin(), it.batch_1.end());
  CHECK(std::count(taken.begin(), taken.end(), 3) == 0);
  CHECK(std::count(taken.begin(), taken.end(), 12) == 0);
  CHECK(std::count(taken.begin(), taken.end(), 4) == 1); // shorter, behind the skipped one
}

TEST_CASE("N-M22 N-M23 one batch waits for the host, two equal ones for whichever is longer") {
  const bench b;
  auto s = state_of(20, 24, 0, 1000);
  s.on_gpu.push_back({99, 6'000, 50}); // no room to swap in
  const auto simple = b.plan(s, offload_kind::simple), even = b.plan(s, offload_kind::symmetric);
  CHECK(simple.batch_0.size() == 24);
  CHECK(simple.batch_1.empty());
  CHECK(simple.time() == doctest::Approx(simple.linear_0 + simple.gpu_attention + simple.host_0));
  CHECK(even.batch_0.size() == 12);
  CHECK(even.batch_1.size() == 12);
  CHECK(even.time() < simple.time());
}

TEST_CASE("N-M24 with everything on the host, no token comes from attention on the GPU") {
  const bench b;
  const auto r = b.play(uniform_trace(100, 1000, 60, 3), offload_kind::full);
  // All but each request's first token, which its prompt gives.
  CHECK(r.host_share == doctest::Approx(59.0 / 60).epsilon(0.02));
}

TEST_CASE("N-M26 the latency of a token is a request's latency over its tokens") {
  const bench b;
  const auto r = b.play({{0, 1000, 50, {}}}, offload_kind::none);
  CHECK(r.token_latency_s == doctest::Approx(r.e2e.mean() / 50));
  CHECK(r.e2e.mean() == doctest::Approx(r.seconds));
}
