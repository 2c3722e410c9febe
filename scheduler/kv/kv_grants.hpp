/// Allocation of an attention pool's slots to holders, and their release.
#pragma once

#include "scheduler/kv/kv_ledger.hpp"

namespace lamella::scheduler {

/// The table of a holder: where it already is, where its source is, where most of its text is, else
/// the one with the smallest share in use that has room for it and `keep_free` more. Cost: O(tables
/// + tokens of its text).
uint32_t table_for(const kv_ledger& ledger, const kv_need& need, uint32_t keep_free);

/// Grants one need in a table, that of its holder if it has one, or changes nothing. A holder that
/// starts fresh has been released before. Slots that
/// only the prefix cache references count as free. Cost: O(runs + tokens of its text).
std::optional<kv_holding> grant_in(kv_ledger& ledger, uint32_t table, const kv_need& need,
                                   uint32_t keep_free, std::chrono::nanoseconds now);

/// Grants all of the needs, in their order, or takes back what it has granted; what a holder that
/// starts fresh had before is free in either case. Fewer than
/// `keep_free` free slots are never left.
std::optional<std::vector<kv_holding>> reserve(kv_ledger& ledger, const std::vector<kv_need>& needs,
                                               uint32_t keep_free, std::chrono::nanoseconds now);

/// Frees all slots of a holder; unknown holders have none.
void release(kv_ledger& ledger, sequence_id holder);

} // namespace lamella::scheduler
