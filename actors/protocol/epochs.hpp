/// Epochs: who plays which part, and what ends it.
#pragma once

#include "actors/protocol/actors.hpp"
#include "actors/protocol/epoch_parts.hpp"
#include "actors/protocol/message.hpp"
#include "actors/protocol/values.hpp"
#include "actors/protocol/worker_terms.hpp"
#include "scheduler/kv/memory_room.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace lamella::actors {

using scheduler::memory_room;

/// The number of a worker that has no part of that kind in an epoch.
constexpr uint32_t no_part = ~0u;

/// Opens an epoch: the worker connects the links of its part. A shard that stored the same part
/// before keeps its cache, else it starts with an empty one. With `beside`, that epoch of the
/// worker goes on serving until it is closed; all others end first.
struct epoch_open {
  uint64_t epoch = 0;
  std::vector<stream_place> streams;
  /// By number; replicas of the prefill pool come after the others, then the shards of `beside`
  /// that lend their KV to the shards of this epoch.
  std::vector<epoch_peer> replicas, shards;
  uint32_t number = 0;       ///< of the worker this is sent to; no_part: it only lends
  uint32_t lender = no_part; ///< its number among the replicas, if it lends KV
  uint64_t beside = 0;       ///< 0: none
  pool_terms pool;
};

/// Closes the epoch: the worker stops everything of it.
struct epoch_close {
  uint64_t epoch = 0;
  bool settled = false; ///< another epoch serves: KV that only this one used is not needed
};

/// The pipeline of that epoch must be rebuilt (MEMBERSHIP to the pipeline's supervisor): a worker
/// was lost.
struct epoch_lost {
  uint64_t epoch = 0;
  std::string role; ///< of the lost worker
  std::string reason;
};

/// The workers allow a better epoch than the one that serves: a worker joined or leaves, or a pool
/// changes its size (MEMBERSHIP to the pipeline's supervisor, which asks for it with epoch_next).
struct epoch_due {
  uint64_t epoch = 0; ///< the one that serves
  std::string reason;
};

/// Asks for the next epoch while the newest one serves. Answered with ec::aborted when there is no
/// better one now.
struct epoch_next {
  uint64_t built = 0; ///< epoch of the sender's pipeline
};

/// The pipeline runs on that epoch: MEMBERSHIP closes the one before. Without `taken`, the pipeline
/// stays on the one before for that reason, and the epoch is closed.
struct epoch_settled {
  uint64_t epoch = 0;
  bool taken = false;
  std::string reason;
  /// Memory does not hold the KV of both epochs: the pipeline asks anew, for an epoch on its own.
  bool no_memory = false;
};

/// The actors that a worker process created for an epoch: replica or shard, by its role.
struct epoch_ready {
  model_replica_actor replica; ///< whose attention is at the pool's shards
  attention_shard_actor shard;
  bool kept = false;      ///< the shard still has the KV of earlier epochs
  kv_source_actor lender; ///< of the KV of `epoch_open::beside`
  /// Memory that is left for the shard's KV. What its caches have not written yet counts as free.
  uint64_t free_bytes = memory_room::no_limit;
  prefill_kv own; ///< of a prefill worker
};

/// Properties that determine the bits of a pool's results (gpu::device_numerics).
struct pool_numerics {
  std::string kernels, sizes;
};

/// The replicas and shards of an epoch, by number; replicas of the prefill pool come last.
struct epoch_members {
  uint64_t epoch = 0;
  std::vector<model_replica_actor> replicas;
  std::vector<attention_shard_actor> shards;
  std::vector<uint32_t> empty; ///< shards without the KV of the previous epoch
  std::vector<stream_place> streams;
  std::vector<prefill_kv> own_kv; ///< by replica
  uint64_t losses = 0;            ///< of workers with a part, so far
  std::vector<uint64_t> caches;   ///< by shard: id of the memory with its KV; ids are never reused
  pool_numerics compute, attention; ///< of replicas and prefill workers; of shards
  pool_sizes sizes;
  scheduler::kv_layout layout, layout_before; ///< of the attention pool; of that of `beside`
  uint64_t beside = 0; ///< the epoch that serves until the pipeline is taken over; 0: none
  std::vector<kv_source_actor> lenders; ///< the shards of `beside`, by number, where KV must move
  pool_sizes sizes_before;              ///< of `beside`
  bool level = false; ///< sequences shall move between tables until these are about equally full
  std::vector<memory_room> rooms; ///< of the shards, by number
  std::vector<std::string> hosts; ///< of the replicas, by number
};

} // namespace lamella::actors

// clang-format off
#define LAMELLA_EPOCHS_MESSAGES(x) \
  x(epoch_open) x(epoch_close) x(epoch_lost) x(epoch_due) x(epoch_next) x(epoch_settled) \
  x(epoch_ready) x(epoch_members)
// clang-format on
LAMELLA_PART(pool_numerics)
LAMELLA_PART(memory_room)
LAMELLA_EPOCHS_MESSAGES(LAMELLA_MADE_ELSEWHERE)
