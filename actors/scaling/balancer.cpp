#include "actors/scaling/balancer.hpp"

#include "actors/protocol/moves.hpp"
#include "actors/protocol/pools.hpp"
#include "actors/shared/exceptions.hpp"

#include <spdlog/spdlog.h>

namespace lamella::actors {

namespace {

using balancer_ptr = balancer_actor::stateful_pointer<balancer_state>;

constexpr caf::timespan balancer_interval = std::chrono::seconds{1};
constexpr caf::timespan balancer_timeout = std::chrono::seconds{5};

void look(balancer_ptr self) {
  const auto& c = self->state.config;
  self->request(c.allocator, balancer_timeout, kv_balance_ask{c.epoch})
      .then(
          [self](const kv_balance& x) {
            auto& st = self->state;
            const auto now = self->clock().now().time_since_epoch();
            if (!st.watch.look(x.now, x.after, now)) return;
            spdlog::info("slot tables unequal epoch={} spread={:.2f} after={:.2f}", st.config.epoch,
                         x.now, x.after);
            self->send(st.config.members, pool_balance{st.config.epoch});
          },
          [](const caf::error&) {}); // it looks again
}

} // namespace

balancer_actor::behavior_type balancer(balancer_ptr self, balancer_config config) {
  end_on_exceptions(self);
  self->state.config = std::move(config);
  self->delayed_send(self, balancer_interval, caf::tick_atom_v);
  return {[self](caf::tick_atom) {
    self->delayed_send(self, balancer_interval, caf::tick_atom_v);
    look(self);
  }};
}

} // namespace lamella::actors
