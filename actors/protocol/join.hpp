/// Joining: the control process and worker processes. Workers never hold each other's handles, only
/// addresses of the data plane (decision 28).
#pragma once

#include "actors/protocol/actors.hpp"
#include "actors/protocol/message.hpp"
#include "gpu/kernels/operators.hpp"
#include "scheduler/kv_layout.hpp"

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

/// What the sizes of the pools decide for their workers. An epoch has its own.
struct pool_terms {
  scheduler::kv_layout layout;                              ///< of the attention pool
  uint32_t own_slots = 0;                                   ///< of a prefill worker's own KV
  uint64_t decode_frame_bytes = 0, prefill_frame_bytes = 0; ///< largest frame of such a stream
  uint64_t own_frame_bytes = 0;    ///< between a prefill worker's replica and its own shard
  uint64_t parity_frame_bytes = 0; ///< to the shard behind the others, which holds their parity
  uint64_t member_frame_bytes = 0; ///< between shards of a pool with parity
  uint64_t move_frame_bytes = 0;   ///< between a shard of the epoch before and one of this
  uint32_t decode_rows = 0;        ///< of the largest iteration of a batch
};

/// Configuration of a worker, sent by the service: a worker reads no settings that could differ.
struct worker_terms {
  // The model. Its path is a default: a worker may have its own.
  std::string model_path;
  uint64_t model_digest = 0;
  std::string version, kernels, shapes;
  std::string device;   ///< of the pool's option; a worker may have its own
  uint32_t threads = 0; ///< 0: the processors it may use
  bool early_q = true;  ///< Q is sent before K and V are computed (L-M16)
  uint32_t ranks = 1;   ///< tensor-parallel devices of this worker, from `device` on (L-M03)
  gpu::half_type wire = gpu::half_type::f16, kv = gpu::half_type::f16;
  uint32_t layers = 0, kv_heads = 0, group = 0, head_dim = 0;
  float scale = 1;
  // The pools.
  pool_terms pool;   ///< at the join
  uint32_t rows = 0; ///< of the largest iteration
  bool prefill_owns_kv = false;
  // The data plane.
  std::string transport;
  std::string link_secret;
  uint32_t link_cluster = 0;
  std::string link_folder; ///< of the control process, for the sockets of its children
  uint64_t decode_rank_bytes = 0, prefill_rank_bytes = 0; ///< largest frame between its ranks
  uint32_t link_timeout_ms = 10'000;
  bool chaos = false; ///< faults may be injected
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
LAMELLA_PART(pool_terms)
LAMELLA_PART(worker_terms)
LAMELLA_JOIN_MESSAGES(LAMELLA_MADE_ELSEWHERE)
