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

/// While a group is under test: of the prefill workers `base` to `base + count`, the next one in
/// turn on the sequence's side. Nothing while no group is, or where both sides share all workers.
std::optional<uint32_t> worker_on_side(const global_scheduler_state& st, sequence_id first,
                                       uint32_t base, uint32_t count, uint64_t turn);

/// Asks sequences on the wrong replica to yield (KV kept); true if any was asked.
bool make_room(scheduler_ptr self);

} // namespace lamella::actors
