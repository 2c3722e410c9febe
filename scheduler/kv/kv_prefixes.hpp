/// The ledger's side of the prefix cache: hits, insertions and evictions.
#pragma once

#include "scheduler/kv/kv_ledger.hpp"

namespace lamella::scheduler {

/// Shares the cached prefix of a fresh holder's text, except for the last position, whose logits
/// must be computed; nothing of a text that is to be computed. The caller frees or keeps the slots.
std::vector<slot_run> share_cached(kv_ledger& ledger, uint32_t table, const kv_text& text,
                                   std::chrono::nanoseconds now);

/// The table whose cached prefix of the text outweighs an even load, and that has room; nothing if
/// there is none.
std::optional<uint32_t> table_with(const kv_ledger& ledger, const kv_need& need,
                                   uint32_t keep_free);

/// A holder's first positions are committed: other sequences may share them. Nothing where the
/// holder is gone, or has fewer slots.
void note_filled(kv_ledger& ledger, sequence_id holder, uint32_t positions,
                 std::chrono::nanoseconds now);

/// Inserts the KV of a holder into the cache before its slots are freed.
void keep_written(kv_ledger& ledger, sequence_id holder, const kv_written& written,
                  std::chrono::nanoseconds now);

/// The KV of these slots is or may be corrupt: its holders go on, but the slots are never shared
/// again.
void distrust(kv_ledger& ledger, uint32_t table, const std::vector<slot_run>& runs);

/// The same for all slots of a holder.
void distrust(kv_ledger& ledger, sequence_id holder);

/// Drops cached slots that an epoch does not take over.
void forget_cached(kv_ledger& ledger, const kv_takeover& takes);

/// Drops what has not been used for the time of the settings.
void expire_cached(kv_ledger& ledger, std::chrono::nanoseconds now);

bool caches_some(const kv_ledger& ledger);

} // namespace lamella::scheduler
