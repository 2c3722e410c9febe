/// PREFILL WORKER: prompts to first tokens and a filled KV cache.
#pragma once

#include "actors/iteration.hpp"
#include "scheduler/prefill_plan.hpp"
#include "scheduler/seat_table.hpp"

#include <map>

namespace lamella::actors {

struct prefill_worker_config {
  iteration_target target;
  uint32_t chunk_tokens = 512; ///< per iteration, over all prompts in it
};

struct prefill_worker_state {
  struct job {
    prefill what;
    caf::typed_response_promise<prefilled> promise;
    std::optional<uint32_t> seat;
    bool cancelled = false;
  };
  prefill_worker_config config;
  std::optional<scheduler::prefill_plan> plan;
  scheduler::seat_table seats;
  std::map<sequence_id, job> jobs;
  /// The iteration that runs, if one does.
  struct flight {
    iteration_launch launch;
    std::vector<scheduler::prefill_piece> pieces; ///< in the order of the launch's spans
  };
  std::optional<flight> current;
  uint64_t iteration = 0;
  uint32_t failures = 0; ///< in a row
  const char* name = "prefill_worker";
};

/// Cuts prompts into chunks and runs them on its own stream of a replica and its shards: attention
/// stays where the KV is (decision 26, the remote binding).
prefill_worker_actor::behavior_type
prefill_worker(prefill_worker_actor::stateful_pointer<prefill_worker_state> self,
               prefill_worker_config config);

} // namespace lamella::actors
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(lamella::actors::prefill_worker_config)
