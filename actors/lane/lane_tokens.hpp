/// The sequences of a LANE that decode: seats, their slots, their rows and tokens (V-M14, V-M15).
#pragma once

#include "actors/lane/lane_state.hpp"

namespace lamella::actors {

/// The sequences that have joined since the last launch get seats.
void seat_joined(lane_ptr self);

/// Gives up the seats that no launch uses any more; their slots go back.
void unseat(lane_ptr self);

/// The seats that run in the next iteration. Asks for slots where few are left; a sequence without
/// its token mask sits out.
std::vector<lane_span> token_rows(lane_ptr self);

/// The row of a seat.
void add_row(iteration_launch& x, uint32_t number, const token_part::seat& s);

/// Whether the next iteration's rows are known before the newest one has answered (decision 20).
bool rows_are_known(const lane_state& st);

/// One token of one sequence is final.
void commit(lane_ptr self, token_part::seat& s, sampled_token&& drawn);

/// Whether the next iteration has to wait for its time; then it is launched by a wake.
bool rests(lane_ptr self);

void on_join(lane_ptr self, const batch_join& x);
void on_leave(lane_ptr self, const batch_leave& x);

} // namespace lamella::actors
