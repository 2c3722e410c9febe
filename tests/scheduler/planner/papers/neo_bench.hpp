/// One A10G with LLaMA3-8B and a host, as the tests of NEO use it.
#pragma once

#include "scheduler/planner/papers/neo.hpp"

namespace lamella::scheduler {

/// 26,400 tokens of KV on the GPU, 200,000 on the host, which reads 50 GB/s.
struct neo_bench {
  cost_model cost{*find_model(built_in_models(), "LLaMA3-8B")};
  neo_machine machine;

  neo_bench() {
    machine.gpu = {*find_device(built_in_devices(), "A10G"), 1};
    machine.gpu_kv_tokens = 26'400;
    machine.host_kv_tokens = 200'000;
    machine.host_bandwidth = 50e9;
    machine.batch_tokens_max = 20'480;
  }

  neo_profile profile() const { return profile_neo(machine, cost); }

  /// Plans an iteration and tells how many tokens were swapped.
  neo_iteration plan(neo_state& s, offload_kind kind, double* swapped = nullptr) const {
    double tokens = 0;
    auto it = plan_iteration(s, machine, profile(), kind, tokens);
    if (swapped) *swapped = tokens;
    return it;
  }
  /// Without step 6.
  neo_iteration plan_two(neo_state& s) const {
    double tokens = 0;
    return plan_two_batches(s, machine, profile(), tokens);
  }
  neo_result play(const request_trace& trace, offload_kind kind) const {
    return simulate_neo(machine, cost, kind, trace);
  }
};

/// Requests of `context` tokens, with 50 to come, in order of their index.
inline neo_state neo_state_of(uint32_t gpu, uint32_t host, uint32_t waiting, uint32_t context) {
  neo_state s;
  uint32_t i = 0;
  for (uint32_t k = 0; k < gpu; ++k) s.on_gpu.push_back({i++, context, 50});
  for (uint32_t k = 0; k < host; ++k) s.on_host.push_back({i++, context, 50});
  for (uint32_t k = 0; k < waiting; ++k) s.waiting.push_back({i++, context, 50});
  return s;
}

} // namespace lamella::scheduler
