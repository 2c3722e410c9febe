/// What a LANE tells when another pipeline takes its sequences and prompts over.
#pragma once

#include "actors/lane/lane_state.hpp"

namespace lamella::actors {

/// The allocator learns what of the sequences is committed: without `stop` at once, and again with
/// the answer, at the end of an iteration that runs; with it when nothing runs any more. Prompts'
/// positions are told with each chunk.
caf::result<bool> on_hand_over(lane_ptr self, const hand_over& x);

/// Answers whoever waits for the end of an iteration, if no more than one runs now.
void tell_iteration_end(lane_ptr self);

/// Of a prefill worker with KV of its own that hands over: prompts that take long are not computed
/// further, if the next epoch can go on with what the shards have pulled of them. The others are
/// computed to their end, because nobody else has their KV.
void stop_own_prompts(lane_ptr self);

/// Nothing is launched any more: another pipeline goes on with these sequences, as soon as what was
/// computed is in the pool.
void finish_hand_over(lane_ptr self);

} // namespace lamella::actors
