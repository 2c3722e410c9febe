/// Reservations of slots: which are granted, refused, or wait until memory has been given back.
#pragma once

#include "actors/kv/kv_allocator_state.hpp"

namespace lamella::actors {

/// Whether a message is of this epoch; others are counted.
bool is_current(const kv_allocator_state& st, uint64_t epoch);

/// Grants all of the needs or none. While shards give memory back the answer waits for that.
caf::result<kv_grant> on_reserve(kv_allocator_ptr self, const kv_reserve& x);

/// The shards have given memory back: what waited for that is answered.
void on_trimmed(kv_allocator_ptr self);

} // namespace lamella::actors
