/// Allocation of an attention pool's slots to holders, and their release.
#pragma once

#include "actors/kv/kv_allocator_state.hpp"
#include "actors/protocol/kv.hpp"

namespace lamella::actors {

/// Grants one need or changes no holding, except that `begin` always frees the old slots of the
/// holder. Slots referenced only by the prefix cache count as free. Cost: O(runs + tokens of its
/// text).
std::optional<kv_holding> grant(kv_allocator_state& st, const kv_need& need, uint32_t keep_free,
                                std::chrono::nanoseconds now);

/// Frees all slots of a holder; unknown holders have none.
void release(kv_allocator_state& st, sequence_id holder);

} // namespace lamella::actors
