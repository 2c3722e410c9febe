/// The ledger's side of the parity keeper: slots that may be read, and slots without parity.
#pragma once

#include "scheduler/kv/kv_ledger.hpp"

namespace lamella::scheduler {

/// Returns the next slots of a walk over the holders and pins them for `x.pin` until its next
/// request or its release. Only committed positions of holders that sent a message in this epoch:
/// no launch writes them while they are pinned. Cost: O(positions walked over).
kv_swept sweep(kv_ledger& ledger, const kv_walk& x);

/// Uncommitted positions are written in this epoch, with parity: the slots behind the first
/// `filled` positions are protected.
void forget_behind(kv_ledger& ledger, const kv_ledger::holding& held);

/// Free slots count as protected: their next holder writes them with parity.
void forget_free(kv_ledger& ledger, uint32_t table, const std::vector<slot_run>& runs);

/// Notes that rows of a holder are pulled, or have been: they have no parity of their own until a
/// parity keeper computes it. Nothing where the holder is gone.
void note_pulled(kv_ledger& x, sequence_id holder, const std::vector<slot_run>& runs,
                 bool complete);

} // namespace lamella::scheduler
