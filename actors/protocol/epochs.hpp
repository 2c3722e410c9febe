/// Epochs: who plays which part, and what ends it.
#pragma once

#include "actors/protocol/actors.hpp"
#include "actors/protocol/message.hpp"
#include "actors/protocol/pulls.hpp"
#include "actors/protocol/values.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace lamella::actors {

/// A worker of an epoch as its peers see it.
struct epoch_peer {
  std::string seat, address; ///< of its end of the data plane
  uint16_t number = 0;       ///< of the seat; frames carry it with the incarnation
  uint32_t incarnation = 0;
};

/// Opens an epoch: the worker connects the links of its part. A shard with the same number as in
/// its last epoch keeps its cache, else it starts with an empty one.
struct epoch_open {
  uint64_t epoch = 0;
  std::vector<stream_place> streams;
  std::vector<epoch_peer> replicas, shards; ///< by number; replicas of the prefill pool come last
  uint32_t number = 0;                      ///< of the worker this is sent to
};

/// Closes the epoch: the worker stops everything of it.
struct epoch_close {
  uint64_t epoch = 0;
};

/// The pipeline of that epoch must be rebuilt (MEMBERSHIP to the pipeline's supervisor): a worker
/// was lost, or (`grown`) a new one can join it.
struct epoch_lost {
  uint64_t epoch = 0;
  bool grown = false;
  std::string role; ///< of the lost worker
  std::string reason;
};

/// The actors that a worker process created for an epoch: replica or shard, by its role.
struct epoch_ready {
  model_replica_actor replica;
  attention_shard_actor shard;
  bool kept = false;      ///< the shard still has the KV of earlier epochs
  kv_source_actor source; ///< of a prefill worker with KV of its own; the shard is its own, too
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
};

/// A process of this host is stopped (SIGSTOP) and will be killed (CHILD KEEPER to MEMBERSHIP).
struct worker_stopped {
  uint32_t pid = 0;
};

/// A process of this host keeps crashing, `faults` times so far (CHILD KEEPER to MEMBERSHIP).
struct seat_failing {
  std::string role;
  uint32_t index = 0;
  std::string how; ///< how it exited last
  uint32_t faults = 0;
};

/// The control process asks the worker to exit.
struct worker_leave {
  std::string reason;
};

/// Injects a fault into a worker that allows it (actors/shared/injury.hpp).
struct worker_injury {
  std::string what;
  uint32_t duration_ms = 0; ///< of pause and slow
};

/// Asks MEMBERSHIP to inject a fault into a live worker: the one in the seat `target` ("model/0"),
/// or one of that role, or any; `chance` selects it. Answered with the seat.
struct injure {
  std::string target;
  worker_injury injury;
  uint64_t chance = 0;
};

} // namespace lamella::actors

// clang-format off
#define LAMELLA_EPOCHS_MESSAGES(x) \
  x(epoch_open) x(epoch_close) x(epoch_lost) x(epoch_ready) x(epoch_members) x(worker_stopped) \
  x(seat_failing) x(worker_leave) x(worker_injury) x(injure)
// clang-format on
LAMELLA_PART(epoch_peer)
LAMELLA_PART(pool_numerics)
LAMELLA_EPOCHS_MESSAGES(LAMELLA_MADE_ELSEWHERE)
