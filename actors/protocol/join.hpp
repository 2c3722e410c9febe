/// Joining: the control process and worker processes. Workers never hold each other's handles, only
/// addresses of the data plane (decision 28).
#pragma once

#include "actors/protocol/actors.hpp"
#include "actors/protocol/message.hpp"
#include "actors/protocol/worker_terms.hpp"

#include <cstdint>
#include <string>

namespace lamella::actors {

/// Version of the join protocol; a join with another version is rejected with both values.
constexpr uint32_t join_protocol = 6;

/// Bytes of a nonce.
constexpr size_t nonce_bytes = 32;

/// No preference for a seat.
constexpr uint32_t any_seat = ~0u;

/// A worker process asks to join.
struct join_ask {
  uint32_t protocol = join_protocol;
  std::string role, name, version, host;
  uint32_t pid = 0;
  uint32_t preferred = any_seat; ///< index of the preferred seat
  uint32_t heartbeat_ms = 0, dead_ms = 0;
  std::string nonce;
  std::string cell{}; ///< an attention cell whose seats it wants; empty: those of the pool
};

/// Asks for a proof of the shared secret.
struct join_challenge {
  std::string cluster, nonce;
};

struct join_proof {
  std::string nonce; ///< of the challenge
  std::string proof;
};

struct join_grant {
  std::string proof; ///< of the secret, by the control process
  std::string role;
  uint32_t index = 0, incarnation = 0;
  uint64_t epoch = 0;
  worker_terms terms;
};

/// An authenticated worker asks for a seat (DOOR to MEMBERSHIP).
struct seat_ask {
  std::string role, name, host;
  uint32_t pid = 0;
  uint32_t preferred = any_seat;
  std::string proof;  ///< for the grant
  std::string cell{}; ///< as join_ask
};

/// Properties of a worker with its model loaded; the last message of a join.
struct worker_facts {
  worker_actor handle;
  std::string version, kernels, shapes;
  uint64_t model_digest = 0;
  std::string address; ///< of its end of the data plane
  std::string device;
  std::string sizes{};   ///< gpu::device_numerics of its device, as `kernels`
  std::string refusal{}; ///< why it cannot serve its seat; empty: it can
};

} // namespace lamella::actors

// clang-format off
#define LAMELLA_JOIN_MESSAGES(x) \
  x(join_ask) x(join_challenge) x(join_proof) x(join_grant) x(seat_ask) x(worker_facts)
// clang-format on
LAMELLA_JOIN_MESSAGES(LAMELLA_MADE_ELSEWHERE)
