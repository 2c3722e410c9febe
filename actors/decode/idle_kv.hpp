/// Idle KV: of sequences that wait for a seat, for their client, or for the end of a poison-request
/// search. It costs nothing until other sequences need its slots.
#pragma once

#include "actors/decode/global_scheduler_state.hpp"
#include "actors/protocol/values.hpp"

namespace lamella::actors {

/// The head of the queue lacks slots: evicts the KV of the youngest sequence that is not about to
/// run, which recomputes it later. Where no running sequence could free slots, also of the youngest
/// one in the queue, to avoid a deadlock.
void take_idle_kv(scheduler_ptr self, sequence_id head);

} // namespace lamella::actors
