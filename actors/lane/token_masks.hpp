/// Logit changes and token masks that a batch needs before a sequence's next token.
#pragma once

#include "actors/lane/lane_state.hpp"
#include "actors/protocol/values.hpp"

#include <span>

namespace lamella::actors {

/// Adds `tokens` to the history of the sequence of a seat and computes the logit changes of its
/// next token. Where the token mask is not known, its row waits for it, and `then` is called when
/// the mask arrives, or with the error.
void follow(lane_ptr self, uint32_t seat, std::span<const token_id> tokens,
            void (*then)(lane_ptr, uint32_t seat, const caf::error&));

} // namespace lamella::actors
