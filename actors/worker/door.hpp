/// DOOR: authenticates joining worker processes; the only published actor.
#pragma once

#include "actors/protocol/actors.hpp"
#include "actors/protocol/join.hpp"
#include "net/data_plane/shared_secret.hpp"
#include "scheduler/membership/join_guard.hpp"

#include <functional>
#include <map>
#include <optional>
#include <set>

namespace lamella::actors {

struct door_config {
  net::shared_secret secret;
  std::string cluster; ///< random, per run of the control process
  std::string version;
  uint32_t heartbeat_ms = 0, dead_ms = 0;
  membership_actor members;
  /// Random bytes for a nonce; tests may use a counter.
  std::function<std::string()> fresh_nonce;
  /// Whether the workers of a pool or cell, as "attention" and "attention/far", are child processes
  /// with a private secret: no other worker gets a seat there, whatever its name. On the actor's
  /// thread. Empty: none are.
  std::function<bool(const std::string& pool)> of_children{};
  std::optional<net::shared_secret> child_secret{};
};

struct door_state {
  std::optional<door_config> config;
  scheduler::join_guard guard;
  struct open_ask {
    join_ask what;
    caf::actor_clock::time_point since;
  };
  std::map<std::string, open_ask> asked;   ///< by nonce; bounded by the guard
  std::set<caf::actor_addr> authenticated; ///< monitored, so it contains only live ones
  const char* name = "door";
};

/// Challenge, proof (reliability C2.3), then a seat from MEMBERSHIP, which answers the worker
/// itself. Wrong proofs are logged and counted by node; a node with five of them waits a minute.
door_actor::behavior_type door(door_actor::stateful_pointer<door_state> self, door_config config);

/// The bytes covered by both proofs. The worker proves first.
std::string worker_proof(const net::shared_secret& secret, const join_ask& ask,
                         const join_challenge& challenge);
bool proves_worker(const net::shared_secret& secret, const std::string& proof, const join_ask& ask,
                   const join_challenge& challenge);
std::string control_proof(const net::shared_secret& secret, const join_ask& ask,
                          const join_challenge& challenge);
bool proves_control(const net::shared_secret& secret, const std::string& proof, const join_ask& ask,
                    const join_challenge& challenge);

/// Starts it.
door_actor start_door(caf::actor_system& system, door_config config);

} // namespace lamella::actors
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(lamella::actors::door_config)
