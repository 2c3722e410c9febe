/// Logit changes and token masks that a batch needs before a sequence's next token.
#pragma once

#include "actors/decode/batch_state.hpp"
#include "actors/protocol/values.hpp"

#include <span>

namespace lamella::actors {

using batch_ptr = batch_actor::stateful_pointer<batch_state>;

/// Adds `tokens` to the history of the seat and computes the logit changes of its next token. Where
/// the token mask is not known, the seat awaits it, and `then` is called when the mask arrives, or
/// with the error.
void follow(batch_ptr self, batch_state::seat& s, std::span<const token_id> tokens,
            void (*then)(batch_ptr, batch_state::seat&, const caf::error&));

} // namespace lamella::actors
