/// The allocator's side of the parity keeper: slots that may be read, and slots without parity.
#pragma once

#include "actors/kv/kv_allocator_state.hpp"
#include "actors/protocol/parity.hpp"

namespace lamella::actors {

/// Returns the next slots of a walk over the holders and pins them for `x.pin` until its next
/// request or its release. Only committed positions of holders that sent a message in this epoch:
/// no launch writes them while they are pinned. Cost: O(positions walked over).
kv_swept sweep(kv_allocator_state& st, const kv_sweep& x);

/// Uncommitted positions are written in this epoch, with parity: the slots behind the first
/// `filled` positions are protected.
void forget_behind(kv_allocator_state& st, const kv_allocator_state::holding& held);

/// Free slots count as protected: their next holder writes them with parity.
void forget_free(kv_allocator_state& st, uint32_t table, const std::vector<slot_run>& runs);

/// Used slots of a table with parity.
uint32_t with_parity(const kv_allocator_state& st, uint32_t table);

} // namespace lamella::actors
