/// Memory of a pool that stands empty goes back to the system.
#pragma once

#include "actors/kv/kv_allocator_state.hpp"

namespace lamella::actors {

/// Notes that slots are in use, so that there is something to give back later.
void note_used(kv_allocator_ptr self);

/// Slots were freed: if none is left in use, the pool is trimmed after a while.
void trim_later(kv_allocator_ptr self);

/// The while has passed. Asks all shards, unless the pool is in use again; calls `done` when the
/// last one has answered. Reservations wait until then.
void trim(kv_allocator_ptr self, void (*done)(kv_allocator_ptr self));

/// An epoch takes over. Reservations that wait are aborted. `lost`: the shards of the epoch before
/// are gone and answer no more; in a planned change they may still give memory back that shards of
/// the new epoch have, too.
void trimming_in_epoch(kv_allocator_ptr self, bool lost);

} // namespace lamella::actors
