/// Sizes of pools in the gateway: requests of operators.
#pragma once

#include "actors/gateway/gateway_state.hpp"

namespace lamella::actors {

/// POST /admin/scale, {"pool":"attention","members":3}: 202 when the change is under way, 409 with
/// the reason when it is refused.
void answer_scale(gateway_ptr self, const exchange_ptr& exchange);

/// POST /admin/drain-worker, {"worker":"attention-1"}: likewise.
void answer_drain_worker(gateway_ptr self, const exchange_ptr& exchange);

/// GET /admin/pools: the sizes and the newest change of each pool.
void answer_pools(gateway_ptr self, const exchange_ptr& exchange);

} // namespace lamella::actors
