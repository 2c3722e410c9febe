/// The jobs of a LANE's prompts: queued, settled, answered.
#pragma once

#include "actors/lane/lane_state.hpp"

namespace lamella::actors {

/// It computes no more: its seat is free from the next launch on.
void leave_seat(lane_ptr self, sequence_id first);

/// Puts a job where its turn is; `again`: it has had it and failed.
void enqueue(lane_ptr self, sequence_id first, bool again);

/// Takes the job on where it stands, unless devices still work on it: a cancelled one is over, a
/// failed one runs again with the same tokens, one whose rows are where they belong is answered.
void settle(lane_ptr self, sequence_id first);

} // namespace lamella::actors
