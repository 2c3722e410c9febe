/// A set of devices for decoding, and how they share the work.
#pragma once

#include "scheduler/limits.hpp"
#include "scheduler/planner/cost/cost.hpp"
#include "scheduler/planner/cost/staggered.hpp"
#include "scheduler/prefill_plan.hpp"

#include <optional>
#include <span>
#include <string>

namespace lamella::scheduler {

/// Which part of the KV cache a memory device has: some heads of every request (L-M23), or all
/// heads of some (V-M07).
enum class partition_kind : uint8_t { heads, requests };

/// With memory devices, model-attention disaggregation at DOP (a, b): every replica of the weights
/// is `compute`, all batches share `memory`. Without (count 0), a homogeneous design: `replicas`
/// independent servers of `compute` that hold their own KV, one batch for each stage.
struct decode_design {
  device_group compute;
  uint32_t replicas = 1;
  uint32_t stages = 1; ///< of a replica, each of them `compute` with its layers (V-M04)
  device_group memory;
  uint32_t batches = 2; ///< n
  pipeline_kind pipeline = pipeline_kind::rotational;
  partition_kind partition = partition_kind::heads;
  network_kind network = network_kind::fhbn;
  bool overlap = true;       ///< Q goes first (L-M15, L-M16)
  uint32_t mini_batches = 1; ///< that a batch is streamed to attention in (V-M08)
  host_overhead host;
  uint32_t block_slots = 1; ///< KV is allocated in multiples of this (16: paged)
  uint32_t window_slots = limits::window_slots; ///< slots added when a request runs short
  double kept_free_share =
      0.05; ///< share of the slots that admission reserves for running requests

  /// Where prefill runs: nowhere (prompts arrive with their KV), on `prefill_servers` groups like
  /// `prefill`, or on the compute devices concurrently with decoding (V-M16), `chunk_tokens` tokens
  /// per iteration.
  device_group prefill;
  uint32_t prefill_servers = 0;
  bool prefill_beside = false;
  uint32_t chunk_tokens = 512;
  /// Prompts concurrently with decoding get the time that it leaves of this (`composer`, as live
  /// launches are composed); 0: no bound but `chunk_tokens`.
  double tbt_target_s = 0;

  /// Seconds that unused KV stays in the simulated prefix cache, where a trace has shared prefixes;
  /// 0: no cache.
  double prefix_cache_s = 0;

  bool prompts() const { return prefill_servers > 0 || prefill_beside; }
  bool disaggregated() const { return memory.count > 0; }
  /// Number of concurrent batches.
  uint32_t concurrent() const { return disaggregated() ? batches : replicas * stages; }
  /// Compute devices of all stages of all replicas.
  uint32_t groups() const { return replicas * stages; }
  /// Independent slot tables.
  uint32_t pools() const {
    if (!disaggregated()) return replicas;
    return partition == partition_kind::heads ? 1 : memory.count;
  }
  uint32_t devices() const {
    return compute.count * groups() + memory.count + prefill.count * prefill_servers;
  }
  double usd_per_hour() const {
    return compute.usd_per_hour() * groups() + memory.usd_per_hour()
           + prefill.usd_per_hour() * prefill_servers;
  }
  /// Whether the price, or the power, of every kind of device is known.
  bool priced() const {
    return known([](const device& x) { return x.usd_per_hour > 0; });
  }
  bool powered() const {
    return known([](const device& x) { return x.watts > 0; });
  }
  double watts() const {
    return compute.watts() * groups() + memory.watts() + prefill.watts() * prefill_servers;
  }

private:
  template <class Of> bool known(Of of) const {
    return of(compute.kind) && (memory.count == 0 || of(memory.kind))
           && (prefill_servers == 0 || of(prefill.kind));
  }
};

/// Slots of each pool of the design.
double slots_per_pool(const decode_design& design, const cost_model& cost);

/// Why the design cannot run the model, as text with numbers; or nothing.
std::optional<std::string> refuse(const decode_design& design, const cost_model& cost);

/// What one iteration costs: `rows` requests with `context` tokens. With `partition: requests`,
/// `busiest_context` is what the fullest member reads.
iteration_times times_of(const decode_design& design, const cost_model& cost, double rows,
                         double context, double busiest_context = 0);

/// The same with pieces of prompts in it, computed where the weights are; their KV goes to the
/// memory devices layer by layer behind the next layer's computing (L-M27).
iteration_times times_with_prompts(const decode_design& design, const cost_model& cost, double rows,
                                   double context, double busiest_context,
                                   std::span<const prefill_piece> pieces);

/// "DOP (2,4) H100-SXM + H20, n = 2" or "4 x H100-SXM".
std::string describe(const decode_design& design);

} // namespace lamella::scheduler
