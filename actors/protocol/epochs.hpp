/// Epochs: who plays which part, and what ends it; and the sizes of pools while a service runs.
#pragma once

#include "actors/protocol/actors.hpp"
#include "actors/protocol/message.hpp"
#include "actors/protocol/prefill_kv.hpp"
#include "actors/protocol/values.hpp"
#include "actors/protocol/worker_terms.hpp"
#include "scheduler/kv/memory_room.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace lamella::actors {

using scheduler::memory_room;

/// A worker of an epoch as its peers see it.
struct epoch_peer {
  std::string seat, address; ///< of its end of the data plane
  uint16_t number = 0;       ///< of the seat; frames carry it with the incarnation
  uint32_t incarnation = 0;
};

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
  model_replica_actor replica;
  attention_shard_actor shard;
  bool kept = false;      ///< the shard still has the KV of earlier epochs
  kv_source_actor source; ///< of a prefill worker with KV of its own; the shard is its own, too
  kv_source_actor lender; ///< of the KV of `epoch_open::beside`
  /// Memory that is left for the shard's KV. What its caches have not written yet counts as free.
  uint64_t free_bytes = memory_room::no_limit;
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
  bool for_good = false; ///< its seat is gone: it need not join again
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

/// Asks MEMBERSHIP to change the size of a pool or cell. Answered at once: refused with the reason,
/// or under way.
struct pool_resize {
  std::string pool; ///< model, attention or prefill, or a cell: "attention/far"
  uint32_t members = 0;
  std::string partition{}; ///< of a cell: "heads" or "requests"; empty: as it is
};

/// Asks MEMBERSHIP to take its part from a worker and to send it away. A spare takes the part;
/// without one the pool shrinks. Answered as pool_resize is.
struct worker_drain {
  std::string worker;  ///< its name or its seat
  bool leaves = false; ///< the worker asks itself, and ends; otherwise an operator asks
};

/// A change of a pool. The newest one of each pool is in system_status.
struct pool_change {
  std::string pool;
  uint32_t from = 0, to = 0;
  std::string state;  ///< "none", "under way", "done" or "rolled back"
  std::string reason; ///< what it waits for, or why it was rolled back; may be empty
  /// Of an attention cell: "heads" or "requests", as it is before the change or without one; else
  /// empty.
  std::string partition{};
  std::string to_partition{}; ///< that the change gives it; empty: the same
};

/// Asks MEMBERSHIP for an epoch of the same sizes in which sequences move between slot tables until
/// these are about equally full. Nothing happens while another change is under way.
struct pool_balance {
  uint64_t epoch = 0; ///< that serves
};

} // namespace lamella::actors

// clang-format off
#define LAMELLA_EPOCHS_MESSAGES(x) \
  x(epoch_open) x(epoch_close) x(epoch_lost) x(epoch_due) x(epoch_next) x(epoch_settled) \
  x(epoch_ready) x(epoch_members) x(worker_stopped) \
  x(seat_failing) x(worker_leave) x(worker_injury) x(injure) x(pool_resize) x(worker_drain) \
  x(pool_change) x(pool_balance)
// clang-format on
LAMELLA_PART(epoch_peer)
LAMELLA_PART(pool_numerics)
LAMELLA_PART(memory_room)
LAMELLA_EPOCHS_MESSAGES(LAMELLA_MADE_ELSEWHERE)
