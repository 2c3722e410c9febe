/// The slots of an attention pool as metrics, by the worker that stores them.
#pragma once

#include "actors/kv/kv_allocator_state.hpp"

namespace lamella::actors {

/// Free, used, cached and orphaned slots of each member, and of each that holds parity; nothing
/// where there are no metrics. Cost: O(runs of holders that have not spoken in this epoch).
void publish(kv_allocator_ptr self);

/// Members that `now` does not name tell of no slots any more.
void forget_members(net::metrics& metrics, const scheduler::kv_tables& before,
                    const scheduler::kv_tables& now);

} // namespace lamella::actors
