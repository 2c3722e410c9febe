/// The CAF system: message types, scheduler, error texts.
#pragma once

#include "config/settings.hpp"

#include <caf/all.hpp>

namespace lamella::actors {

/// Configuration of every actor system of ours. All messages are registered here: CAF loses an
/// unregistered one silently when it must be serialised.
class system_config : public caf::actor_system_config {
public:
  /// `threads`: workers of the cooperative scheduler. Actors only decide; a few are enough.
  explicit system_config(size_t threads = 2);

  /// When heartbeats begin, and with them the watch over who is silent.
  enum class heartbeats {
    at_once,
    once_connected ///< reach_door() starts them
  };
  /// A system that speaks with other processes: heartbeats both ways, mutual TLS where it is
  /// configured. Throws std::invalid_argument when heartbeats are off.
  system_config(size_t threads, const config::control_settings& control,
                heartbeats begin = heartbeats::at_once);

private:
  // Name the messages of a conversation for other processes; each in the conversation's source.
  void add_iterations();
  void add_kv();
  void add_requests();
  void add_prefills();
  void add_moves();
  void add_parity();
  void add_join();
  void add_epochs();
  void add_pools();
  void add_status();
  void add_traces();
};

} // namespace lamella::actors
