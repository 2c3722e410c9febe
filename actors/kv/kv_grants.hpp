/// What a holder gets of an attention pool's slots, and that it gives them back.
#pragma once

#include "actors/kv/kv_allocator.hpp"

namespace lamella::actors {

/// Grants one need or changes nothing that anybody holds, but that a beginning always gives back
/// what was there. What the prefix cache alone refers to counts as free. Cost: O(runs + tokens of
/// its text).
std::optional<kv_holding> grant(kv_allocator_state& st, const kv_need& need, uint32_t keep_free,
                                std::chrono::nanoseconds now);

/// Gives back all that a holder has; strangers have nothing.
void release(kv_allocator_state& st, sequence_id holder);

} // namespace lamella::actors
