/// The allocator's side of the prefix cache: what of it a prompt takes, what it is given, and when.
#pragma once

#include "actors/kv/kv_allocator.hpp"

namespace lamella::actors {

/// Shares what the cache of a table has of a beginning holder's text, all but its last position,
/// whose logits are wanted. The caller gives it back or keeps it.
std::vector<slot_run> share_cached(kv_allocator_state& st, uint32_t table, const kv_text& text,
                                   std::chrono::nanoseconds now);

/// The table that has so much of the text that this counts for more than an even load, and room;
/// nothing if there is none.
std::optional<uint32_t> table_with(const kv_allocator_state& st, const kv_need& need,
                                   uint32_t keep_free);

/// A holder's first positions are there for good.
void on_filled(kv_allocator_state& st, const kv_filled& x, std::chrono::nanoseconds now);

/// Offers what a holder wrote to the cache, before its slots go back.
void keep_written(kv_allocator_state& st, sequence_id holder, const kv_written& written,
                  std::chrono::nanoseconds now);

/// K and V of these slots are not what they should be, or may not be: whoever holds them goes on,
/// but nobody else gets them, now or later.
void distrust(kv_allocator_state& st, uint32_t table, const std::vector<slot_run>& runs);

/// The same of all that a holder has.
void on_doubt(kv_allocator_state& st, const kv_doubt& x);

/// What of the caches an epoch does not take over.
void forget_cached(kv_allocator_state& st, const kv_adopt& x);

/// Slots that nobody but the caches refers to.
uint32_t cached(const kv_allocator_state& st);

} // namespace lamella::actors
