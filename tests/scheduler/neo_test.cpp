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

TEST_CASE("N-M05 N-M07 N-M14 the host is hidden in both halves of an iteration") {
  const bench b;
  for (const uint32_t gpu : {0u, 7u, 17u})
    for (const uint32_t host : {1u, 17u, 54u})
      for (const uint32_t waiting : {0u, 1u, 7u}) {
        auto s = state_of(gpu, host, waiting, 1000);
        double swapped = 0;
        const auto it = plan_iteration(s, b.machine, b.cost, offload_kind::full, swapped);
        CAPTURE(gpu);
        CAPTURE(host);
        CHECK(it.linear_0 >= it.host_1 * 0.999999);
        CHECK(it.linear_1 + it.gpu_attention >= it.host_0 * 0.999999);
        if (it.two_batches)
          CHECK(it.time()
                == doctest::Approx(std::max(it.linear_0, it.host_1)
                                   + std::max(it.linear_1 + it.gpu_attention, it.host_0)));
      }
}

TEST_CASE("N-M09 the last in leaves the GPU when it is full, and comes back below 95 %") {
  const bench b;
  auto s = state_of(27, 0, 0, 1000); // 27,000 tokens
  double swapped = 0;
  plan_iteration(s, b.machine, b.cost, offload_kind::neo, swapped);
  CHECK(s.on_gpu.size() == 26);
  REQUIRE(s.on_host.size() == 1);
  CHECK(s.on_host[0].index == 26);
  CHECK(swapped == 1000);
  s = state_of(10, 3, 0, 1000);
  swapped = 0;
  plan_iteration(s, b.machine, b.cost, offload_kind::neo, swapped);
  CHECK(s.on_gpu.size() == 13);
  CHECK(swapped == 3000);
}

TEST_CASE("N-M10 prompts stay on the GPU while they fit; after one for the host, all go there") {
  const bench b;
  auto s = state_of(24, 0, 4, 1000); // room for two more
  double swapped = 0;
  const auto it = plan_iteration(s, b.machine, b.cost, offload_kind::full, swapped);
  CHECK(it.gpu_prefills == std::vector<uint32_t>{0, 1});
  for (const auto i : it.host_prefills) CHECK(i >= 2);
  s.waiting[2].context = 20'000;
  s.waiting[3].context = 10; // would fit the GPU
  swapped = 0;
  const auto other = plan_iteration(s, b.machine, b.cost, offload_kind::full, swapped);
  CHECK(std::count(other.gpu_prefills.begin(), other.gpu_prefills.end(), 3) == 0);
}

TEST_CASE("N-M12 prompts for the host that hide nothing wait") {
  const bench b;
  auto s = state_of(26, 0, 3, 1000); // nobody on the host needs to be hidden
  double swapped = 0;
  const auto it = plan_iteration(s, b.machine, b.cost, offload_kind::neo, swapped);
  CHECK(it.host_prefills.size() < 3);
}

TEST_CASE("N-M13 N-M15 with room on the GPU nothing goes to the host, and nothing is lost") {
  const bench b;
  const auto trace = uniform_trace(300, 100, 20, 7);
  auto roomy = b.machine;
  roomy.gpu_kv_tokens = 1e6;
  const auto neo = simulate_neo(roomy, b.cost, offload_kind::neo, trace),
             none = simulate_neo(roomy, b.cost, offload_kind::none, trace);
  CHECK(neo.host_share == 0);
  CHECK(neo.requests_per_s == doctest::Approx(none.requests_per_s));
  CHECK(neo.requests == 300);
}

TEST_CASE("N-M01 N-Q10 partial offload helps where memory is short, and is never much worse") {
  const bench b;
  for (const uint32_t output : {20u, 100u, 300u}) {
    const auto trace = uniform_trace(1500, 1000, output, 3);
    const auto none = simulate_neo(b.machine, b.cost, offload_kind::none, trace),
               neo = simulate_neo(b.machine, b.cost, offload_kind::neo, trace);
    CAPTURE(output);
    CHECK(neo.requests == 1500);
    CHECK(neo.requests_per_s > 0.95 * none.requests_per_s);
    if (output == 100) CHECK(neo.requests_per_s > 1.1 * none.requests_per_s);
  }
}

TEST_CASE("N-Q11 N-Q30 the gain grows with the host's bandwidth, and has its peak in the middle") {
  bench b;
  const auto gain = [&](double bandwidth, uint32_t output) {
    b.machine.host_bandwidth = bandwidth;
    const auto trace = uniform_trace(2000, 1000, output, 3);
    return simulate_neo(b.machine, b.cost, offload_kind::neo, trace).requests_per_s
           / simulate_neo(b.machine, b.cost, offload_kind::none, trace).requests_per_s;
  };
  CHECK(gain(60e9, 200) > gain(20e9, 200));
  CHECK(gain(20e9, 100) > gain(20e9, 20));
  CHECK(gain(20e9, 100) > gain(20e9, 400));
}

TEST_CASE("a request that fits nowhere is refused") {
  const bench b;
  CHECK_THROWS_AS(simulate_neo(b.machine, b.cost, offload_kind::neo, {{0, 9'000'000, 1, {}}}),
                  std::invalid_argument);
}

TEST_CASE("a host request that nothing can hide still ends") {
  bench b;
  b.machine.gpu_kv_tokens = 0;
  b.machine.host_bandwidth = 1e6; // hours for one token
  const auto r = simulate_neo(b.machine, b.cost, offload_kind::full, {{0, 1000, 3, {}}});
  CHECK(r.requests == 1);
  CHECK(r.tokens == 3);
}
