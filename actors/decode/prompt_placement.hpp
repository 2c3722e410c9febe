/// How the GLOBAL SCHEDULER chooses the prefill worker of a prompt (Splitwise IV-A).
#pragma once

#include "actors/decode/global_scheduler_state.hpp"

namespace lamella::actors {

/// The prefill worker for a prompt with `tokens` tokens to compute (scheduler/prompt_route.hpp);
/// `suffix`: its beginning is in the prefix cache, so that only shards can compute the rest. While
/// suspects are apart, the next worker in turn on the sequence's side.
uint32_t prefill_worker_for(global_scheduler_state& st, sequence_id first, uint64_t tokens,
                            bool suffix);

/// Replicas whose prompts are all computed only decode from now on (S-M08).
void leave_mixed_pool(global_scheduler_state& st);

} // namespace lamella::actors
