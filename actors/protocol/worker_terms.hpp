/// What the service tells its workers: parts of messages about joining and epochs.
#pragma once

#include "actors/protocol/message.hpp"
#include "actors/protocol/values.hpp"
#include "gpu/kernels/operators.hpp"
#include "scheduler/kv_layout.hpp"

#include <cstdint>
#include <string>

namespace lamella::actors {

/// What the sizes of the pools decide for their workers. An epoch has its own.
struct pool_terms {
  scheduler::kv_layout layout;                              ///< of the attention pool
  uint32_t own_slots = 0;                                   ///< of a prefill worker's own KV
  uint64_t decode_frame_bytes = 0, prefill_frame_bytes = 0; ///< largest frame of such a stream
  uint64_t own_frame_bytes = 0;    ///< between a prefill worker's replica and its own shard
  uint64_t parity_frame_bytes = 0; ///< to a shard behind the others, which holds parity
  uint64_t member_frame_bytes = 0; ///< between shards of a cell with parity
  uint64_t move_frame_bytes = 0;   ///< between a shard of the epoch before and one of this
  uint32_t decode_rows = 0;        ///< of the largest iteration of a batch
};

/// Configuration of a worker, sent by the service: a worker reads no settings that could differ.
struct worker_terms {
  // The model. Its path is a default: a worker may have its own.
  std::string model_path;
  uint64_t model_digest = 0;
  std::string version, kernels, shapes;
  std::string device;        ///< of the pool's option; a worker may have its own
  uint32_t threads = 0;      ///< 0: the processors it may use
  bool early_q = true;       ///< Q is sent before K and V are computed (L-M16)
  uint32_t mini_batches = 1; ///< of a shard's rows in an iteration, at most (V-M08)
  uint32_t ranks = 1;        ///< tensor-parallel devices of this worker, from `device` on (L-M03)
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

} // namespace lamella::actors
LAMELLA_PART(pool_terms)
LAMELLA_PART(worker_terms)
