/// Decoding with part of the KV cache and its attention on the host's processors (NEO 3, 4).
///
/// Times are of a whole iteration, all layers together: T_l the linear operators of a sub-batch,
/// T_ga attention on the GPU, T_ca on the host.
#pragma once

#include "scheduler/cost.hpp"
#include "scheduler/distribution.hpp"
#include "scheduler/trace.hpp"

#include <string>
#include <vector>

namespace lamella::scheduler {

/// How attention is divided between GPU and host.
enum class offload_kind : uint8_t {
  none,      ///< the baseline: all KV on the GPU, prefill and decode in one batch
  neo,       ///< partial, two asymmetric sub-batches (N-M01, N-M02)
  simple,    ///< strawman 1: one batch, the GPU waits for the host (N-M22)
  symmetric, ///< strawman 2: two equal sub-batches (N-M23)
  full       ///< FastDecode+: all KV on the host (N-M24)
};

struct neo_machine {
  device_group gpu;
  double gpu_kv_tokens = 0, host_kv_tokens = 0;
  double host_bandwidth = 0; ///< bytes per second that host attention reads, all cores
  double pcie_bandwidth = 25e9;
  double batch_tokens_max = 0; ///< of one iteration (activations)
};

/// A request that decodes.
struct neo_sequence {
  uint32_t index = 0;
  uint32_t context = 0; ///< tokens
  uint32_t left = 0;    ///< tokens to come
};

/// What an iteration would do: numbers of requests and tokens, and the time it takes.
struct neo_iteration {
  std::vector<uint32_t> gpu_prefills, host_prefills; ///< positions in the queue
  std::vector<uint32_t> batch_0, batch_1;            ///< host requests, positions in their list
  double linear_0 = 0, linear_1 = 0, gpu_attention = 0, host_0 = 0, host_1 = 0;
  bool two_batches = false;
  double seconds = 0;
  double sequences = 0; ///< that gain a token
  /// max{T_l0, T_ca1} + max{T_l1 + T_ga0, T_ca0} (N-M05).
  double time() const;
};

/// The waiting, the decoding on the GPU and those on the host, in order of arrival.
struct neo_state {
  std::vector<neo_sequence> waiting, on_gpu, on_host;
  double gpu_tokens() const;
  double host_tokens() const;
};

/// The six steps (N-M08 to N-M13). Swaps whole requests in `state` (step 2); the rest is only
/// planned. `swapped_tokens` counts what crosses PCIe.
neo_iteration plan_iteration(neo_state& state, const neo_machine& machine, const cost_model& cost,
                             offload_kind kind, double& swapped_tokens);

struct neo_result {
  double requests_per_s = 0; ///< between 30 % and 70 % of all ends (N-Q25)
  double tokens_per_s = 0;
  double token_latency_s = 0;           ///< request latency over its tokens, mean (N-M26)
  distribution ttft, tbt, e2e;          ///< per request; TBT is a request's mean
  double seconds = 0, mean_running = 0; ///< of the whole run; requests that decode, over time
  uint64_t tokens = 0;
  uint64_t requests = 0, iterations = 0, two_batch_iterations = 0;
  double host_share = 0; ///< of all generated tokens
};

/// Plays the trace, at its arrivals. Every request that fits somewhere ends; throws
/// std::invalid_argument when one never fits.
neo_result simulate_neo(const neo_machine& machine, const cost_model& cost, offload_kind kind,
                        const request_trace& trace);

} // namespace lamella::scheduler
