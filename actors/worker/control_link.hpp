/// The one connection between a worker process and the control process: publishing and reaching the
/// door, over mutual TLS where it is configured, else on loopback only.
#pragma once

#include "actors/protocol/actors.hpp"
#include "config/settings.hpp"
#include "net/data_plane/control_gate.hpp"

#include <chrono>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace lamella::actors {

/// Why a process cannot publish or reach the door, as text for its operator.
struct link_error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// The secrets of the door's process and of this one differ.
struct denied_error : link_error {
  using link_error::link_error;
};

/// The processes do not fit: another version, or TLS on one side only.
struct refused_error : link_error {
  using link_error::link_error;
};

/// Publishes the door on `control.listen`, for processes that prove one of the secrets before CAF
/// gets any byte of them; until the gate is destroyed, which must be before the system is. Throws
/// link_error, also where the address is not loopback and mutual TLS is not configured.
std::unique_ptr<net::control_gate> publish_door(caf::actor_system& system, const door_actor& door,
                                                const config::control_settings& control,
                                                std::vector<net::shared_secret> secrets);

/// A connected door, and the addresses of the connection's ends, without ports.
struct reached_door {
  door_actor door;
  std::string here, there;
};

/// Connects to a door, and starts the heartbeats of a system that starts them once connected.
/// Blocks for at most `patience`. Throws link_error; the same rule for plain connections.
reached_door reach_door(caf::actor_system& system, const config::host_and_port& where,
                        const config::control_settings& control, const net::shared_secret& secret,
                        std::chrono::milliseconds patience = std::chrono::seconds{5});

} // namespace lamella::actors
