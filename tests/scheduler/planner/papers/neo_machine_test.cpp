// What NEO knows of its machine: measured times, blocks, GPUs and NUMA nodes.
#include "tests/scheduler/planner/papers/neo_bench.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <stdexcept>

using namespace lamella::scheduler;

TEST_CASE("N-M06 times come from some sizes, lie on lines between them, and stay near the model") {
  const neo_bench b;
  const auto p = b.profile();
  for (const double x : {1.0, 7.0, 54.0, 93.0, 170.0, 1001.0, 8191.0}) {
    CAPTURE(x);
    const auto exact = b.cost.model_s(b.machine.gpu, x);
    CHECK(p.linear_s(x) == doctest::Approx(exact).epsilon(0.01));
  }
  // 512 and 768 were measured; what is between is on their line, where the model is not.
  const auto middle = (p.prompt_s(512) + p.prompt_s(768)) / 2;
  CHECK(p.prompt_s(640) == doctest::Approx(middle).epsilon(1e-12));
  CHECK(p.prompt_s(640) > b.cost.prompt_attention_s(b.machine.gpu, 640, 0));
  CHECK(p.gpu_s(17'000) == doctest::Approx(b.cost.attention_s(b.machine.gpu, 17, 17'000)));
  CHECK(
      p.host_s(17'000)
      == doctest::Approx(17'000 * b.cost.model().kv_bytes_per_token() / b.machine.host_bandwidth));
}

TEST_CASE("N-M06 the scheduler believes its profile: a host measured slow is given less") {
  const neo_bench b;
  auto slow = b.profile();
  slow.host_s = piecewise_linear{{{0, 0}, {1000, 0.1}}};
  double swapped = 0;
  auto s = neo_state_of(25, 60, 0, 1000), t = s;
  const auto usual = b.plan_two(s), careful = plan_two_batches(t, b.machine, slow, swapped);
  CHECK(careful.batch_0.size() + careful.batch_1.size()
        < usual.batch_0.size() + usual.batch_1.size());
}

TEST_CASE("N-M04 prompts for the host leave layer by layer: only what PCIe cannot take costs") {
  neo_bench b;
  b.machine.gpu_kv_tokens = 0;
  const auto trace = uniform_trace(60, 1000, 20, 7);
  const auto wide = b.play(trace, offload_kind::full);
  b.machine.pcie_bandwidth *= 2;
  CHECK(b.play(trace, offload_kind::full).seconds == wide.seconds); // hidden already
  b.machine.pcie_bandwidth = 1e8;
  CHECK(b.play(trace, offload_kind::full).seconds > 1.5 * wide.seconds);
}

TEST_CASE("N-M20 every GPU has its heads on the host: the times of all parts are those of one") {
  neo_bench b;
  b.machine.gpu.count = 2;
  const auto two = b.profile();
  b.machine.gpu.count = 1;
  const auto one = b.profile();
  // Parts work side by side on what the host's memory gives; nothing passes between them.
  CHECK(two.host_s(70'000) == one.host_s(70'000));
  CHECK(two.gpu_s(26'000) < 0.6 * one.gpu_s(26'000));
  b.machine.gpu.count = 3; // 8 KV heads
  CHECK_THROWS_AS(b.play({{0, 100, 1, {}}}, offload_kind::neo), std::invalid_argument);
}

TEST_CASE("N-M21 one of four NUMA nodes has a quarter of the memory and of the bandwidth") {
  const neo_bench b;
  const auto m = on_numa_nodes(b.machine, 1, 4);
  CHECK(m.host_kv_tokens == 50'000);
  CHECK(m.host_bandwidth == doctest::Approx(12.5e9));
  CHECK(m.gpu_kv_tokens == b.machine.gpu_kv_tokens);
  CHECK(profile_neo(m, b.cost).host_s(1000) == doctest::Approx(4 * b.profile().host_s(1000)));
}

TEST_CASE("N-M28 KV comes in blocks of 16 on GPU and host: a token more may cost a block") {
  neo_bench b;
  b.machine.gpu_kv_tokens = 10 * 1008;
  for (const uint32_t context : {1006u, 1007u, 1008u}) { // with one more: 1007, 1008, 1009
    auto s = neo_state_of(10, 0, 0, context);
    b.plan(s, offload_kind::neo);
    CAPTURE(context);
    CHECK(s.on_gpu.size() == (context < 1008 ? 10 : 9));
  }
  b.machine.block_tokens = 1;
  auto s = neo_state_of(9, 0, 0, 1100);
  b.plan(s, offload_kind::neo);
  CHECK(s.on_gpu.size() == 9); // 9909 tokens
  b.machine.block_tokens = 256;
  s = neo_state_of(9, 0, 0, 1100);
  b.plan(s, offload_kind::neo);
  CHECK(s.on_gpu.size() == 7); // 1280 each
}

TEST_CASE(
    "requests longer than either cache are left out and counted; of nothing else is refused") {
  neo_bench b;
  auto trace = uniform_trace(20, 1000, 20, 7);
  trace[3].prompt_tokens = 9'000'000;
  const auto r = b.play(trace, offload_kind::neo);
  CHECK(r.never_fit == 1);
  CHECK(r.requests == 19);
  // Little's law: requests that decode over time, and how long each does.
  CHECK((r.e2e.sum() - r.ttft.sum()) / r.seconds == doctest::Approx(r.mean_running).epsilon(1e-6));
  trace = {{0, 9'000'000, 5, {}}};
  CHECK_THROWS_AS(b.play(trace, offload_kind::neo), std::invalid_argument);
}
