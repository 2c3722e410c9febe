/// Which pool is too small for what it has to do, and which would do with fewer members.
#pragma once

#include "scheduler/scaling_look.hpp"

#include <optional>
#include <string>

namespace lamella::scheduler {

/// Why each pool is too small, as text for an operator; empty where it is not. KV points at the
/// pool that holds it. A late TBT points at attention where t_a exceeds a replica's turn, at the
/// replicas elsewhere (L-M19). The queue and a late TTFT point at those who compute prompts; while
/// KV is short they point nowhere, for more slots come first. Prefill members that are idle half
/// of the time are not what the queue waits for.
by_pool<std::string> too_small(const scaling_look& look, const scaling_settings& settings);

/// The iteration time with `count` members in the pool over that of now, at most. Exact for equal
/// batches that take turns; work that is unknown grows as the members become fewer.
double slowdown(const scaling_look& look, scaled_pool pool, uint32_t count);

/// Whether the KV in use fits into `count` members of the pool; true for a pool without KV.
bool kv_fits(const scaling_look& look, const scaling_settings& settings, scaled_pool pool,
             uint32_t count);

/// Why `count` members would do, as text for an operator, or nothing. KV, TBT, TTFT and prefill
/// work, as far as they depend on the pool, would all stay below the limits by the margin; the
/// queue is at most half of what it may be.
std::optional<std::string> would_do(const scaling_look& look, const scaling_settings& settings,
                                    scaled_pool pool, uint32_t count);

} // namespace lamella::scheduler
