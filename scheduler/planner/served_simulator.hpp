/// Simulates a trace on a profiled service: the live admission, slots and prefill chunks, with
/// times from its profile.
///
/// Prompts are part of it, unlike in simulate(): they run concurrently with the batch on the same
/// devices, and both are slowed down, at the rates of the profile; or they share its launches.
#pragma once

#include "scheduler/composer.hpp"
#include "scheduler/planner/served_profile.hpp"
#include "scheduler/planner/simulator.hpp"

namespace lamella::scheduler {

/// Whole run, from the first arrival to the last token. `ttft` begins with the arrival and ends
/// with the prompt's own token; `tbt` are the gaps between a request's tokens, each with weight 1,
/// those beside prompts or after a preemption included; `mean_batch` are the requests between their
/// first and last token.
struct served_result : simulation_result {
  double decode_busy = 0, prefill_busy = 0; ///< shares of the time
  double extrapolated = 0;                  ///< share of decode time beyond what was measured
};

struct served_options {
  load_kind load = load_kind::saturated;
  uint32_t seats = 0; ///< 0: those of the profile
  /// Prompts share the launches of the batch (`batching.launches: mixed`), within these bounds; of
  /// a profile that was measured with separate ones.
  bool mixed = false;
  composer_bounds bounds{};
  uint32_t stand_backs = 0; ///< launches that a sequence may sit out for prompts (S-M12)
  /// Decode iterations with batch 0, prefill iterations with batch 1, mixed ones as both that they
  /// have; may be empty.
  std::function<void(const iteration_span&)> on_iteration;
};

/// Requests that the service could not hold are left out and counted. Throws std::invalid_argument
/// when none is left, table_error when the profile says too little. Cost: O(tokens + iterations *
/// points).
served_result simulate_served(const served_profile& profile, const request_trace& trace,
                              const served_options& options = {});

} // namespace lamella::scheduler
