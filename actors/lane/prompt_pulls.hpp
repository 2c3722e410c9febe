/// Pulls of the KV of a prefill worker: start, timeout, comparison of digests.
#pragma once

#include "actors/lane/lane_state.hpp"
#include "actors/protocol/prefills.hpp"

#include <functional>
#include <span>

namespace lamella::actors {

/// Positions of one prompt.
struct prompt_rows {
  sequence_id sequence{};
  uint32_t first = 0, count = 0;
};

/// Called for a job whose last active pull has ended.
using pulls_ended = void (*)(lane_ptr self, sequence_id sequence);

/// Attempt numbers that mark pulls in iteration_failed: their links are cut; the pull with the
/// number `iteration` timed out.
constexpr uint32_t attempt_of_pulls = ~0u;
constexpr uint32_t attempt_of_late_pull = attempt_of_pulls - 1;

/// Starts one pull per shard for all of these rows together (S-M17). `iteration`: writes them now,
/// layer by layer; 0: the rows are complete. Failures are stored in the jobs.
void begin_pulls(lane_ptr self, std::span<const prompt_rows> rows, uint64_t iteration,
                 pulls_ended then);

/// The rows of that iteration are complete: its pulls end soon, or their frames are lost.
void await_pulls(lane_ptr self, uint64_t iteration);

/// Timeout of a pull: it is aborted unless it has ended.
void on_late_pull(lane_ptr self, uint64_t number);

/// Where the pool has parity, informs its allocator that the prompt's rows are unprotected, before
/// they are pulled; and when they are complete, so that their parity is rebuilt.
void tell_of_pulls(lane_ptr self, const prefill& what, bool complete);

/// Aborts all active pulls with an error.
void cancel_pulls(lane_ptr self);

/// Frees a job's own slots. Pulls may still read them: a later writer waits for the reads, layer by
/// layer (S-M16).
void free_slots(lane_state& st, prompt_part::job& j);

} // namespace lamella::actors
