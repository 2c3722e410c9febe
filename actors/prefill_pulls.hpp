/// Pulls of what a prefill worker has computed: begun, watched, compared.
#pragma once

#include "actors/prefill_worker.hpp"

#include <functional>
#include <span>

namespace lamella::actors {

/// Positions of one prompt.
struct prompt_rows {
  sequence_id sequence{};
  uint32_t first = 0, count = 0;
};

/// Called for a job whose last pull under way has ended.
using pulls_ended = void (*)(prefill_ptr self, sequence_id sequence);

/// Attempt number that stands for pulls in iteration_failed.
constexpr uint32_t attempt_of_pulls = ~0u;

/// Begins one pull per shard for all of these rows together (S-M17). `iteration`: writes them now,
/// layer by layer; 0: they are there. Failures stay in the jobs.
void begin_pulls(prefill_ptr self, std::span<const prompt_rows> rows, uint64_t iteration,
                 pulls_ended then);

/// Ends all pulls under way with an error.
void cancel_pulls(prefill_ptr self);

/// Gives a job's own slots back. Pulls may still read them: whoever writes there waits for them,
/// layer by layer (S-M16).
void free_slots(prefill_worker_state& st, prefill_worker_state::job& j);

} // namespace lamella::actors
