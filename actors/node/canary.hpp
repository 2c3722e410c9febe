/// CANARY: one token through the whole pipeline when it was idle for a while, so that readiness
/// means that a request would be served (api-and-ops 6).
#pragma once

#include "actors/request/service.hpp"
#include "actors/shared/pulse.hpp"

namespace lamella::actors {

using canary_actor = caf::typed_actor<caf::reacts_to<caf::tick_atom>>;

struct canary_state {
  service_ptr server;
  std::shared_ptr<pulse> beats;
  sequence_id sequence{};
  bool running = false;
  const char* name = "canary";
};

/// Runs when the last beat is half as old as the limit, and polls twice as often, at least every
/// second. `sequence` is reserved for it. Canaries appear in no request metrics and no logs.
canary_actor::behavior_type canary(canary_actor::stateful_pointer<canary_state> self,
                                   service_ptr server, std::shared_ptr<pulse> beats,
                                   sequence_id sequence);

} // namespace lamella::actors
using lamella_pulse_ptr = std::shared_ptr<lamella::actors::pulse>;
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(lamella_pulse_ptr)
