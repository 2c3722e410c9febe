/// What becomes of a KV ledger in a new epoch (L-M25).
#pragma once

#include "scheduler/kv/kv_ledger.hpp"

namespace lamella::scheduler {

/// A new epoch. What it has lost is free afterwards, and with it the slots of its holders; the
/// others keep theirs if they resume them before silent_holders() has them dropped (L-M25).
void adopt(kv_ledger& x, uint64_t epoch, const kv_takeover& takes);

/// Holders that have sent nothing in this epoch.
std::vector<sequence_id> silent_holders(const kv_ledger& x);

} // namespace lamella::scheduler
