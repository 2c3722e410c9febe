/// Launches of a LANE: what goes into an iteration, its message, and its timeout.
#pragma once

#include "actors/lane/lane_state.hpp"

namespace lamella::actors {

/// What the next iteration runs, grouped by attention member: the rows of the sequences that
/// decode, unless they stand back for prompts (S-M12), and beside them as much of the prompts as
/// the composer lets in. After a failure, the
/// prompts of the iteration that failed and no others.
std::vector<scheduler::launch_span> next_spans(lane_ptr self);

/// Rows of these are computed next: whoever asked for such a prompt hears of it once.
void note_begun(lane_ptr self, const std::vector<scheduler::prefill_piece>& pieces);

/// The message of an iteration. Its records, span by span: of a row its draw; of a piece the scores
/// of the tokens behind its rows where it is scored, then the draws of each choice where it is the
/// last. Prompts that begin get their seats.
iteration_launch compose(lane_ptr self, const lane_state::flight& flight);

/// An iteration has taken `took`: what is learned from it.
void learn(lane_state& st, const lane_state::flight& x, std::chrono::nanoseconds took);

/// Records of a piece: see compose().
uint32_t scores_of(const scheduler::prefill_piece& piece);

} // namespace lamella::actors
