/// Which sequence of a BATCH gives its slots up when they run out.
#pragma once

#include "actors/decode/batch_state.hpp"

namespace lamella::actors {

/// The sequence that came last of those with KV in that slot table: it runs again later, with the
/// same tokens (its request keeps them). One at a time of each table.
void evict_youngest(batch_actor::stateful_pointer<batch_state> self, uint32_t table);

} // namespace lamella::actors
