/// What a batch needs to know before a sequence's next draw.
#pragma once

#include "actors/decode/batch.hpp"

#include <span>

namespace lamella::actors {

using batch_ptr = batch_actor::stateful_pointer<batch_state>;

/// Adds `tokens` to those that the seat's next draw depends on, and finds out what they change.
/// Where it is not known what may come next, the seat awaits its mask, and `then` is called when it
/// has come, or with the reason why it never will.
void follow(batch_ptr self, batch_state::seat& s, std::span<const token_id> tokens,
            void (*then)(batch_ptr, batch_state::seat&, const caf::error&));

} // namespace lamella::actors
