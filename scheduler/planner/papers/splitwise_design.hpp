/// A cluster that splits phases, and what a simulated run of it tells.
#pragma once

#include "scheduler/planner/cost/distribution.hpp"
#include "scheduler/planner/cost/profile.hpp"
#include "scheduler/planner/cost/trace.hpp"

#include <array>
#include <string>
#include <vector>

namespace lamella::scheduler {

/// A kind of machine that runs one model.
struct machine_kind {
  std::string name;
  machine_profile times;
  double kv_tokens = 0;          ///< room for KV beside the weights
  double kv_bytes_per_token = 0; ///< of the model
  double nic_bandwidth = 0;      ///< bytes per second to other machines
  double visible_transfer_s = 0; ///< of a layer-wise transfer (S-Q21)
  double usd_per_hour = 0, watts = 0;
  double device_watts = 0; ///< most that all its devices may draw by themselves
  double power_cap = 1;    ///< share of that which they are limited to (S-M19)

  /// What its devices draw while `prompt_tokens` run, or `requests` decode (S-M28): prompts draw
  /// more the more they are, up to the cap; decoding draws the same whatever the batch. 0 where no
  /// power was measured.
  double watts_of(double prompt_tokens, double requests) const;
};

/// A machine dies; after `repair_s` it is back, empty.
struct machine_failure {
  uint32_t machine = 0; ///< prompt machines first
  double at_s = 0, repair_s = 10;
};

/// What runs together on a machine that has prompts and tokens (S-M02).
enum class batching_mode : uint8_t {
  mixed,      ///< both in one iteration
  continuous, ///< prompts or tokens; prompts go first, as long as tokens stand for that
  request     ///< a batch of requests from its prompts to its last token; others wait for all of it
};

struct splitwise_options {
  decode_key key = decode_key::released;
  uint32_t batch_tokens = 2048; ///< of one iteration (S-M10)
  uint32_t batch_requests = 512;
  uint32_t pending_tokens = 8192;  ///< a longer prompt queue sends requests to the mixed pool
  uint32_t preemptions = 4;        ///< of one request (S-M12)
  uint32_t serialized_below = 512; ///< prompt tokens (S-M15)
  bool layer_wise = true;          ///< S-M14; else every transfer is serialized (S-M13)
  double mixed_slowdown = 1.1;     ///< prompt iterations that carry tokens along
  double repurpose_s = 0;          ///< a machine mixed for so long changes its pool; 0: never
  double report_s = 0; ///< machines tell their load so often; 0: it is always known (S-M06)
  std::vector<machine_failure> failures;
  bool checkpoint = false; ///< KV of ended prompts outlives machines (S-M27)
  batching_mode batching = batching_mode::mixed;
};

struct splitwise_design {
  machine_kind prompt, token;
  uint32_t prompt_machines = 0; ///< none: all machines run mixed batches (S-M25)
  uint32_t token_machines = 0;
  double usd_per_hour() const {
    return prompt.usd_per_hour * prompt_machines + token.usd_per_hour * token_machines;
  }
  double watts() const { return prompt.watts * prompt_machines + token.watts * token_machines; }
};

/// Latencies in seconds, and as slowdowns against a request alone on the reference machine.
struct splitwise_result {
  distribution ttft, tbt, e2e; ///< per request; TBT is a request's mean
  distribution ttft_slowdown, tbt_slowdown, e2e_slowdown;
  uint64_t requests = 0, tokens = 0, transfers = 0, to_mixed = 0, preempted = 0;
  uint64_t preempted_most = 0;             ///< of one request
  uint64_t repurposed = 0;                 ///< machines, times (S-M09)
  uint64_t failures = 0;                   ///< of machines that were up
  uint64_t restarted = 0, lost_tokens = 0; ///< by them (S-M27)
  double seconds = 0;
  double mean_decoding = 0; ///< requests between their first and their last token, over time
  double transfer_s = 0;    ///< visible, mean per transfer
  double joules = 0;        ///< of all devices while they worked, where power was measured
  double requests_per_s() const { return seconds > 0 ? double(requests) / seconds : 0; }
  /// Of a batch job, whose end is all that counts: requests per second for a dollar per hour
  /// (S-M30).
  double requests_per_usd(const splitwise_design& design) const {
    return design.usd_per_hour() > 0 ? requests_per_s() / design.usd_per_hour() : 0;
  }

  /// TTFT, TBT, E2E by P50, P90, P99 (S-M24, table VI).
  bool meets_slo() const;
};

} // namespace lamella::scheduler
