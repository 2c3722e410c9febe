#include "actors/node/node_impl.hpp"

#include "actors/scaling/autoscaler.hpp"
#include "actors/shared/explain.hpp"

#include <spdlog/spdlog.h>

namespace lamella::actors {

/// Pools whose sizes follow the load. The service can do without: no pool changes then.
void node::impl::watch_load(const config::settings& now) {
  if (scaler)
    return caf::anon_send(scaler, std::make_shared<const config::pools_settings>(now.pools));
  if (!now.pools.autoscaled()) return;
  autoscaler_config c;
  c.members = control->members();
  c.newest = [this] {
    std::lock_guard lock{server_mutex};
    return server;
  };
  c.load = parts->base.load;
  c.metrics = metrics;
  c.options = now;
  c.kv_heads = parts->program->spec.kv_heads;
  scaler = start_autoscaler(system, std::move(c));
  caf::actor_cast<caf::actor>(scaler)->attach_functor([this](const caf::error& reason) {
    if (reason != caf::exit_reason::user_shutdown)
      spdlog::error("autoscaler ended, pools keep their sizes reason=\"{}\"",
                    explain(system, reason));
  });
}

} // namespace lamella::actors
