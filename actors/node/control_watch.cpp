#include "actors/node/control_watch.hpp"

#include "actors/shared/exceptions.hpp"

#include <caf/io/all.hpp>
#include <caf/io/network/multiplexer.hpp>

namespace lamella::actors {

namespace {

constexpr caf::timespan interval = std::chrono::seconds{1};

} // namespace

caf::behavior control_watch(caf::event_based_actor* self, std::shared_ptr<health_board> health) {
  end_on_exceptions(self);
  self->send(self, caf::tick_atom_v);
  return {[self, health = std::move(health)](caf::tick_atom) {
    const auto beat = [health] { health->control.beat(std::chrono::steady_clock::now()); };
    auto& system = self->system();
    if (system.has_middleman())
      system.middleman().backend().post(beat);
    else
      beat();
    self->delayed_send(self, interval, caf::tick_atom_v);
  }};
}

} // namespace lamella::actors
