/// Logit changes and token masks that a batch needs before a sequence's next token.
#pragma once

#include "actors/lane/lane_state.hpp"
#include "actors/protocol/values.hpp"

#include <span>

namespace lamella::actors {

/// Adds `tokens` to the history of the seat and computes the logit changes of its next token. Where
/// the token mask is not known, the seat awaits it, and `then` is called when the mask arrives, or
/// with the error.
void follow(lane_ptr self, token_part::seat& s, std::span<const token_id> tokens,
            void (*then)(lane_ptr, token_part::seat&, const caf::error&));

} // namespace lamella::actors
