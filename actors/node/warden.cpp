#include "actors/node/warden.hpp"
#include "actors/shared/explain.hpp"

#include "actors/shared/exceptions.hpp"

#include <spdlog/spdlog.h>

#include <map>
#include <memory>
#include <utility>

namespace lamella::actors {

caf::behavior warden(caf::event_based_actor* self, const warden_config& config) {
  end_on_exceptions(self);
  auto names = std::make_shared<std::map<caf::actor_addr, std::string>>();
  for (const auto& x : config.watched) {
    const auto address = caf::actor_cast<caf::actor_addr>(x.handle);
    names->emplace(address, x.name);
    self->monitor(address);
  }
  const auto told = std::make_shared<std::function<void(const std::string&)>>(config.on_loss);
  self->set_down_handler([self, names, told](const caf::down_msg& down) {
    if (down.reason == caf::exit_reason::user_shutdown || !*told) return;
    const auto& name = names->at(down.source);
    spdlog::critical("vital actor lost name={} reason=\"{}\"", name,
                     explain(self->system(), down.reason));
    std::exchange(*told, nullptr)(name);
  });
  // It handles no messages and lives until it is asked to stop.
  return {[](caf::tick_atom) {}};
}

} // namespace lamella::actors
