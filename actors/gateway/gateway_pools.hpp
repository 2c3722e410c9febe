/// Sizes of pools in the gateway: requests of operators.
#pragma once

#include "actors/gateway/gateway_state.hpp"
#include "actors/protocol/pools.hpp"

#include <vector>

namespace lamella::actors {

/// POST /admin/scale, {"pool":"attention","members":3}: 202 when the change is under way, 409 with
/// the reason when it is refused.
void answer_scale(gateway_ptr self, const exchange_ptr& exchange);

/// POST /admin/drain-worker, {"worker":"attention-1"}: likewise.
void answer_drain_worker(gateway_ptr self, const exchange_ptr& exchange);

/// The newest change of each pool, or the one that waits for others where there is one.
std::vector<pool_change> with_queued(const gateway_config& config,
                                     std::vector<pool_change> changes);

/// GET /admin/pools: the sizes and the newest change of each pool.
void answer_pools(gateway_ptr self, const exchange_ptr& exchange);

} // namespace lamella::actors
