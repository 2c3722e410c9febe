/// What a simulated run is asked for, and what it tells.
#pragma once

#include "scheduler/planner/cost/distribution.hpp"
#include "scheduler/planner/cost/trace.hpp"
#include "scheduler/planner/decode_design.hpp"
#include "scheduler/scaling_policy.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace lamella::scheduler {

/// Arrivals of requests: as fast as they can be queued, to measure capacity, or as in the trace.
enum class load_kind : uint8_t { saturated, arrivals };

/// A device fails at `at_s`; a spare takes its seat after `repair_s`. A memory device loses the KV
/// of its heads, or by request that of its requests: running requests are recomputed (L-M26), at
/// prefill speed of the compute devices. A compute device loses no KV (L-M25) where there are
/// memory devices; else all KV of its server. Users of the device wait: of independent servers, and
/// of replicas in a fixed pipeline, one. Failures hit the devices in turn, from the first.
struct failure_event {
  double at_s = 0;
  bool memory_device = false;
  double repair_s = 10;
};

/// Devices are added or removed at `at_s`. Memory devices: that many more or fewer share the KV
/// cache, whose shares move over their NICs while decoding pauses; requests without room are rerun
/// later. Compute devices: that many replicas (or servers, of a homogeneous design) as large as the
/// others; new ones serve when they have read the weights, and add a batch where batches rotate.
struct scaling_event {
  double at_s = 0;
  bool memory_devices = false;
  int32_t change = 0;
};

/// The live autoscaler decides what is added and removed, within the bounds of each pool: replicas
/// (or servers), memory devices, servers for prompts. Requests that the smallest allowed memory
/// pool could not hold are left out.
struct autoscaling {
  struct bounds {
    uint32_t least = 0, most = 0; ///< members; most 0: the pool stays as it is
  };
  by_pool<bounds> pools;
  scaling_settings settings;
  scaling_seconds tbt_target{0}, ttft_target{0}; ///< of the 99th percentile; 0: none
  double look_s = 1;                             ///< between two looks
};

/// A step that the autoscaler has taken.
struct scaling_record {
  double at_s = 0;
  scaling_step step;
};

/// One iteration, for a timeline.
struct iteration_span {
  double start_s = 0, duration_s = 0;
  uint32_t batch = 0, rows = 0;
  double context_tokens = 0;
};

struct simulation_options {
  load_kind load = load_kind::saturated;
  uint32_t seats_per_batch = 65'536;
  double requests_limit_s = 1e9; ///< simulated time after which the run is aborted
  std::vector<failure_event> failures;
  std::vector<scaling_event> scalings;
  std::optional<autoscaling> autoscale;
  std::function<void(const iteration_span&)> on_iteration; ///< may be empty
  std::function<void(const scaling_look&)> on_look;        ///< of the autoscaler; may be empty
};

/// Times in seconds. Throughput, batch and TBT are taken while the queue is full: from a tenth of
/// the tokens on until no request waits; over the whole run if arrivals decide or the trace is
/// short.
struct simulation_result {
  double seconds = 0;          ///< of the whole run
  double measured_seconds = 0; ///< of the part that is reported
  double tokens_per_s = 0;
  double mean_batch = 0; ///< requests in all batches together, over time
  distribution tbt;      ///< per token
  distribution ttft;     ///< arrival to first token: decoded, or of the prompt where the design
                         ///< computes prompts
  distribution e2e;      ///< arrival to last token
  uint64_t tokens = 0, requests = 0;
  uint64_t never_fit = 0;              ///< requests longer than a pool; left out
  uint64_t scalings = 0, failures = 0; ///< that came before the end of the run
  std::vector<scaling_record> steps;   ///< of those scalings, the autoscaler's own
  double device_hours = 0;             ///< of the whole run, all devices together
  double most_device_hours = 0; ///< those of a run with the most that the autoscaler may have
  double mean_usd_per_hour = 0; ///< of the whole run, by the devices that there were
  double prefill_busy = 0;      ///< share of the whole run that servers for prompts work, mean
  uint64_t prefix_queries = 0, prefix_hits = 0; ///< tokens of prompts: all, and found
  uint64_t preemptions = 0, iterations = 0, recomputed_tokens = 0;
  double model_busy = 0, attention_busy = 0; ///< shares of the measured time, mean of devices
  double wire_bytes_per_s = 0;               ///< mean of the measured time, all NICs together
  /// Little's law, whole run, from independent sums: requests there over time, and arrival rate
  /// into the batches times mean stay.
  double running_over_time = 0, rate_times_stay = 0;
  double usd_per_mtok(double usd_per_hour) const {
    return tokens_per_s > 0 ? usd_per_hour / 3600 / tokens_per_s * 1e6 : 0;
  }
};

} // namespace lamella::scheduler
