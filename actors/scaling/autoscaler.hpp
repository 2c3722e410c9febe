/// AUTOSCALER: has the sizes of the pools follow the load (L-M19).
#pragma once

#include "actors/protocol/actors.hpp"
#include "actors/request/service.hpp"
#include "actors/shared/load_window.hpp"
#include "config/settings.hpp"
#include "net/metrics/metrics.hpp"
#include "scheduler/scaling_policy.hpp"

#include <functional>
#include <memory>

namespace lamella::actors {

struct autoscaler_config {
  membership_actor members;
  std::function<service_ptr()> newest; ///< service; null while there is none
  std::shared_ptr<load_window> load;
  std::shared_ptr<net::metrics> metrics; ///< may be null
  config::settings options;
  uint32_t kv_heads = 0; ///< of the model
};

/// The pools that there are, with their bounds and without members. A pool that is not scaled has
/// the bounds of its members, which each look gives it.
scheduler::by_pool<scheduler::pool_look> scaled_pools_of(const config::settings& options,
                                                         uint32_t kv_heads);

scheduler::scaling_settings scaling_settings_of(const config::settings& options);

/// Looks once a second, and asks MEMBERSHIP for at most one step at a time. Pools of other hosts
/// are not changed: whoever starts their workers follows `lamella_pool_wish`. The service can do
/// without it.
autoscaler_actor start_autoscaler(caf::actor_system& system, autoscaler_config config);

} // namespace lamella::actors
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(lamella::actors::autoscaler_config)
