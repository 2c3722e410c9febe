/// What a LANE tells when another pipeline takes its sequences and prompts over.
#pragma once

#include "actors/lane/lane_state.hpp"

namespace lamella::actors {

/// Without `stop`, the allocator learns at once what of the sequences is committed; with it, when
/// nothing runs any more. Prompts' positions are told with each chunk.
caf::result<bool> on_hand_over(lane_ptr self, const hand_over& x);

/// Nothing is launched any more: another pipeline goes on with these sequences, as soon as what was
/// computed is in the pool.
void finish_hand_over(lane_ptr self);

} // namespace lamella::actors
