/// The sequences of a LANE that decode: what scheduler/batch/decode_batch.hpp decides of them,
/// done.
#pragma once

#include "actors/lane/lane_state.hpp"

namespace lamella::actors {

/// The sequences that have joined since the last launch get rows.
void seat_joined(lane_ptr self);

/// Frees the rows that no launch uses any more; their slots go back.
void unseat(lane_ptr self);

/// Sequences that decode, as an iteration may have them.
struct token_step {
  std::vector<scheduler::launch_span> rows;
  std::vector<uint32_t> standing; ///< seats that stand back for prompts
};

/// The rows of the next iteration. Asks for slots where few are left; a sequence without its token
/// mask sits out. `prompts_first`: whoever may stand back does.
token_step next_tokens(lane_ptr self, bool prompts_first);

/// Adds the row of a seat to a launch.
void add_row(iteration_launch& x, const token_part& part, uint32_t seat);

/// The token of a row of an iteration that has ended is final.
void commit(lane_ptr self, uint32_t seat, sampled_token&& drawn);

/// Whether the next iteration has to wait for its time; then it is launched by a wake.
bool rests(lane_ptr self);

void on_join(lane_ptr self, const batch_join& x);
void on_leave(lane_ptr self, const batch_leave& x);

} // namespace lamella::actors
