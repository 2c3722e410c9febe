/// The allocator's side of whoever keeps the parity: which slots may be read, and which have none.
#pragma once

#include "actors/kv/kv_allocator.hpp"

namespace lamella::actors {

/// The next slots of a walk over the holders, and pins them in the name of `x.pin` until the next
/// question or its release. Only positions that are written for good, of holders that have spoken
/// in this epoch: nobody writes them while they are pinned. Cost: O(positions walked over).
kv_swept sweep(kv_allocator_state& st, const kv_sweep& x);

/// What the holder does not have for good is written in this epoch, with parity: the slots behind
/// its first `filled` positions lack nothing.
void forget_behind(kv_allocator_state& st, const kv_allocator_state::holding& held);

/// Slots that nobody holds any more lack nothing: whoever takes them writes them with parity.
void forget_free(kv_allocator_state& st, const std::vector<slot_run>& runs);

/// Slots in use whose parity the pool has.
uint32_t with_parity(const kv_allocator_state& st);

} // namespace lamella::actors
