/// Pulls of what a prefill worker has computed: begun, watched, compared.
#pragma once

#include "actors/prefill/prefill_worker.hpp"

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

/// Attempt numbers that stand for pulls in iteration_failed: their links are cut; the one with the
/// number `iteration` has had its time.
constexpr uint32_t attempt_of_pulls = ~0u;
constexpr uint32_t attempt_of_late_pull = attempt_of_pulls - 1;

/// Begins one pull per shard for all of these rows together (S-M17). `iteration`: writes them now,
/// layer by layer; 0: they are there. Failures stay in the jobs.
void begin_pulls(prefill_ptr self, std::span<const prompt_rows> rows, uint64_t iteration,
                 pulls_ended then);

/// The rows of that iteration are all there: what pulls them ends soon, or its frames are lost.
void await_pulls(prefill_ptr self, uint64_t iteration);

/// A pull has had its time: it is given up, unless it is over.
void on_late_pull(prefill_ptr self, uint64_t number);

/// Where the pool has parity, its allocator must know that the prompt's rows lack it, from before
/// they are pulled; and when they are complete, so that it is made of them.
void tell_of_pulls(prefill_ptr self, const prefill& what, bool complete);

/// Ends all pulls under way with an error.
void cancel_pulls(prefill_ptr self);

/// Gives a job's own slots back. Pulls may still read them: whoever writes there waits for them,
/// layer by layer (S-M16).
void free_slots(prefill_worker_state& st, prefill_worker_state::job& j);

} // namespace lamella::actors
