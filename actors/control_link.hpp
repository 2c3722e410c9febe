/// The one connection between a worker process and the control process: publishing and reaching the
/// door, over mutual TLS where it is configured, else on loopback only.
#pragma once

#include "actors/actors.hpp"
#include "config/settings.hpp"

#include <chrono>
#include <stdexcept>

namespace lamella::actors {

/// Why a process cannot publish or reach the door, in words for its operator.
struct link_error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Publishes the door on `control.listen`; returns the port. Throws link_error, also where the
/// address is not loopback and mutual TLS is not configured.
uint16_t publish_door(caf::actor_system& system, const door_actor& door,
                      const config::control_settings& control);

/// Connects to a door, and starts the heartbeats of a system whose begin with a connection. Blocks
/// for `patience` at most. Throws link_error; the same rule for plain connections.
door_actor reach_door(caf::actor_system& system, const config::host_and_port& where,
                      const config::control_settings& control,
                      caf::timespan patience = std::chrono::seconds{5});

} // namespace lamella::actors
