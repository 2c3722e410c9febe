/// KV ALLOCATOR: slot bookkeeping of one attention pool (V-M11, V-M12).
#pragma once

#include "actors/kv/kv_allocator_state.hpp"
#include "actors/protocol/moves.hpp"
#include "actors/protocol/parity.hpp"

namespace lamella::actors {

/// Holders are sequences. A pool that is empty for a second returns its memory to the system;
/// reservations meanwhile wait for it. Serves no request before the first `kv_adopt`.
kv_allocator_actor::behavior_type kv_allocator(kv_allocator_ptr self, kv_allocator_config config);

} // namespace lamella::actors
