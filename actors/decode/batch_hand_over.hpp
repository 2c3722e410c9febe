/// What a BATCH tells when another pipeline takes its sequences over.
#pragma once

#include "actors/decode/batch_state.hpp"

namespace lamella::actors {

using batch_ptr = batch_actor::stateful_pointer<batch_state>;

/// Without `stop`, the allocator learns at once what of the sequences is committed; with it, when
/// nothing runs any more. `pump`: the batch does whatever can be done.
caf::result<bool> on_hand_over(batch_ptr self, const hand_over& x, void (*pump)(batch_ptr));

/// Nothing runs any more: another pipeline goes on with these sequences.
void finish_hand_over(batch_ptr self);

} // namespace lamella::actors
