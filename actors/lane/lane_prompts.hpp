/// The prompts of a LANE: their jobs, from the question to the answer (S-M10; L-M26).
#pragma once

#include "actors/lane/lane_state.hpp"

namespace lamella::actors {

/// Asks for KV and first tokens of a prompt. A malformed question, or one that no own KV has room
/// for, is answered with an error at once.
caf::result<prefilled> on_prefill(lane_ptr self, const prefill& x);

/// Answered with ec::cancelled once no launch uses the prompt's slots.
void on_cancel(lane_ptr self, const prefill_cancel& x);

/// An iteration is on its way: rows of its prompts that are pulled layer by layer are pulled while
/// it runs. Own KV only.
void begin_layered(lane_ptr self, const lane_state::flight& flight);

/// An iteration with prompts has ended: `records` are those of its spans, see compose(). Prompts
/// that are complete are answered, or their rows are pulled first.
void take_prompts(lane_ptr self, const lane_state::flight& flight,
                  std::vector<sampled_token> records, std::chrono::nanoseconds took);

/// What is left of the prompts that have begun, for whoever chooses where the next one goes
/// (S-M06).
void tell_load(lane_ptr self);

} // namespace lamella::actors
