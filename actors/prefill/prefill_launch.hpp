/// Launches of a prefill worker: bounds, the message of an iteration, and what came of it.
#pragma once

#include "actors/prefill/prefill_worker_state.hpp"

namespace lamella::actors {

/// Of the next iteration. Before one was measured, chunks are bounded by their tokens alone.
scheduler::prefill_limits limits(prefill_ptr self);

/// For the next iteration, of these pieces.
uint32_t timeout_ms(const prefill_worker_state& st,
                    const std::vector<scheduler::prefill_piece>& pieces);

/// Rows of these are computed next.
void note_begun(prefill_ptr self, const std::vector<scheduler::prefill_piece>& pieces);

/// The next iteration, of these pieces. Its records: of each piece the scores of the tokens behind
/// its rows where it is scored, then the draws of each choice where it is the last.
iteration_launch compose(prefill_ptr self, const std::vector<scheduler::prefill_piece>& pieces);

/// Gives the jobs what such an iteration has sampled; those whose last piece it was have a result.
void take_sampled_tokens(prefill_worker_state& st,
                         const std::vector<scheduler::prefill_piece>& pieces, sampled answer);

} // namespace lamella::actors
