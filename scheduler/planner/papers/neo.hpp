/// Decoding with part of the KV cache and its attention on the host's processors (NEO 3, 4).
///
/// Times are of a whole iteration, all layers together: T_l the linear operators of a sub-batch,
/// T_ga attention on the GPU, T_ca on the host. Requests are never divided: the KV of each is
/// either on the GPU or on the host.
#pragma once

#include "scheduler/planner/cost/cost.hpp"
#include "scheduler/planner/cost/distribution.hpp"
#include "scheduler/planner/cost/profile.hpp"
#include "scheduler/planner/cost/trace.hpp"

#include <cmath>
#include <vector>

namespace lamella::scheduler {

/// How attention is divided between GPU and host.
enum class offload_kind : uint8_t {
  none,      ///< the baseline: all KV on the GPU, prefill and decode in one batch
  neo,       ///< partial, two asymmetric sub-batches (N-M01, N-M02)
  simple,    ///< strawman 1: all KV on the host, one batch, the GPU waits for it (N-M22)
  symmetric, ///< strawman 2: all KV on the host, two halves; prompts run alone (N-M23)
  full       ///< FastDecode+: NEO's batches, but all KV on the host (N-M24)
};

struct neo_machine {
  device_group gpu; ///< every GPU has its KV heads on the host, too (N-M20)
  double gpu_kv_tokens = 0, host_kv_tokens = 0;
  double host_kept_tokens = 0; ///< of the host's, not for new prompts: what runs grows into them
  double host_bandwidth = 0;   ///< bytes per second that host attention reads, all cores
  double pcie_bandwidth = 25e9;
  double batch_tokens_max = 0; ///< of one iteration (activations)
  uint32_t block_tokens = 16;  ///< KV is handed out in blocks of this, on either side (N-M28)

  /// Tokens of whole blocks that hold `tokens`.
  double paged(double tokens) const { return std::ceil(tokens / block_tokens) * block_tokens; }
};

/// `nodes` of a host's `of` NUMA nodes: their share of its memory and bandwidth (N-M21).
neo_machine on_numa_nodes(neo_machine machine, uint32_t nodes, uint32_t of);

/// Times of whole iterations, taken once at some sizes and joined by straight lines (N-M06).
struct neo_profile {
  piecewise_linear linear_s; ///< T_l, by tokens of the sub-batch
  piecewise_linear prompt_s; ///< attention of one prompt to itself, by its tokens
  piecewise_linear gpu_s;    ///< T_ga, by tokens of context
  piecewise_linear host_s;   ///< T_ca, by tokens of context
  double saturation = 0;     ///< S*: tokens that take as long to compute as the weights to read
};
neo_profile profile_neo(const neo_machine& machine, const cost_model& cost);

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
  double linear_0 = 0, linear_1 = 0;                 ///< T_l
  double gpu_attention = 0;      ///< of prompts and of the GPU's requests, both in batch 0
  double host_0 = 0, host_1 = 0; ///< T_ca
  bool two_batches = false;
  double seconds = 0;
  double sequences = 0; ///< that gain a token
  /// max{T_l0, T_ca1} + max{T_l1 + T_ga0, T_ca0} (N-M05). Attention of prompts counts to T_ga0:
  /// it runs between the linear operators of its own batch, beside those of the other.
  double time() const;
};

/// The waiting, the decoding on the GPU and those on the host, in order of arrival.
struct neo_state {
  std::vector<neo_sequence> waiting, on_gpu, on_host;
  double gpu_tokens() const;
  double host_tokens() const;
};

/// The six steps (N-M08 to N-M13), or what a simpler design does instead. Swaps whole requests in
/// `state` (step 2); the rest is only planned. `swapped_tokens` counts what crosses PCIe.
neo_iteration plan_iteration(neo_state& state, const neo_machine& machine,
                             const neo_profile& profile, offload_kind kind, double& swapped_tokens);

/// Steps 1 to 5 alone: the schedule that step 6 compares with the GPU's own.
neo_iteration plan_two_batches(neo_state& state, const neo_machine& machine,
                               const neo_profile& profile, double& swapped_tokens);

struct neo_result {
  /// Of the ends between 30 % and 70 % of them all (N-Q25); of the whole run where they come at
  /// once.
  double requests_per_s = 0;
  double tokens_per_s = 0;              ///< in the same time
  double token_latency_s = 0;           ///< request latency over its tokens, mean (N-M26)
  distribution ttft, tbt, e2e;          ///< per request; TBT is a request's mean
  double seconds = 0, mean_running = 0; ///< of the whole run; requests that decode, over time
  uint64_t tokens = 0;
  uint64_t requests = 0, iterations = 0, two_batch_iterations = 0;
  uint64_t never_fit = 0; ///< requests longer than either cache; left out
  double host_share = 0;  ///< of all generated tokens
};

/// Plays the trace, at its arrivals. Every request that fits somewhere ends; throws
/// std::invalid_argument when none does, or when the GPUs do not divide the KV heads.
neo_result simulate_neo(const neo_machine& machine, const cost_model& cost, offload_kind kind,
                        const request_trace& trace);

} // namespace lamella::scheduler
