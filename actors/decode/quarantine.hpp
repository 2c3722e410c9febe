/// How the GLOBAL SCHEDULER isolates suspects of a poison-request search (reliability A8): suspects
/// run on the last replica, other sequences on the rest; where they share more, the others wait.
#pragma once

#include "actors/decode/global_scheduler_state.hpp"
#include "actors/protocol/values.hpp"

namespace lamella::actors {

/// Whether the sequence must be held back now; it is held until this is false.
bool must_wait(const global_scheduler_state& st, sequence_id first);

/// The sequence is known to crash workers.
bool is_poisonous(const global_scheduler_state& st, sequence_id first);

/// The load of the batches for this entry: batches that it must not join count as full. Nothing
/// when it must wait until other sequences have left its replica.
std::optional<std::vector<uint64_t>> load_for(const global_scheduler_state& st, sequence_id first);

/// The prefill worker with the fewest pending tokens (S-M05). While a group is under test, the next
/// one in turn on the group's side; `suffix`: the beginning of the prompt is in the prefix cache.
uint32_t prefill_worker_for(global_scheduler_state& st, sequence_id first, bool suffix);

/// Asks sequences on the wrong replica to yield (KV kept); true if any was asked.
bool make_room(scheduler_ptr self);

} // namespace lamella::actors
