/// The allocator's side of the prefix cache: hits, insertions and evictions.
#pragma once

#include "actors/kv/kv_allocator_state.hpp"
#include "actors/protocol/kv.hpp"

namespace lamella::actors {

/// Shares the cached prefix of a fresh holder's text, except for the last position, whose logits
/// must be computed; nothing of a text that is to be computed. The caller frees or keeps the slots.
std::vector<slot_run> share_cached(kv_allocator_state& st, uint32_t table, const kv_text& text,
                                   std::chrono::nanoseconds now);

/// The table whose cached prefix of the text outweighs an even load, and that has room; nothing if
/// there is none.
std::optional<uint32_t> table_with(const kv_allocator_state& st, const kv_need& need,
                                   uint32_t keep_free);

/// A holder's first positions are committed.
void on_filled(kv_allocator_state& st, const kv_filled& x, std::chrono::nanoseconds now);

/// Inserts the KV of a holder into the cache before its slots are freed.
void keep_written(kv_allocator_state& st, sequence_id holder, const kv_written& written,
                  std::chrono::nanoseconds now);

/// The KV of these slots is or may be corrupt: its holders go on, but the slots are never shared
/// again.
void distrust(kv_allocator_state& st, uint32_t table, const std::vector<slot_run>& runs);

/// The same for all slots of a holder.
void on_doubt(kv_allocator_state& st, const kv_doubt& x);

/// Drops cached slots that an epoch does not take over.
void forget_cached(kv_allocator_state& st, const kv_adopt& x);

/// Slots referenced only by the caches.
uint32_t cached(const kv_allocator_state& st);

} // namespace lamella::actors
