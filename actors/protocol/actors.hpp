/// One interface per role, bottom-up, so that each can only mention the ones above it.
///
/// Actors decide and enqueue; devices wait for devices. No message lies between two layers of a
/// token.
#pragma once

#include "actors/protocol/error.hpp"
#include "actors/protocol/messages.hpp"
#include "actors/protocol/parity_messages.hpp"
#include "actors/protocol/pull_messages.hpp"
#include "actors/protocol/status_messages.hpp"
#include "actors/protocol/worker_messages.hpp"

namespace lamella::actors {

using abort_atom = caf::atom_constant<caf::atom("abort")>;
constexpr abort_atom abort_atom_v{};
using status_atom = caf::atom_constant<caf::atom("status")>;
constexpr status_atom status_atom_v{};
using drain_atom = caf::atom_constant<caf::atom("drain")>;
constexpr drain_atom drain_atom_v{};
using wake_atom = caf::atom_constant<caf::atom("wake")>;
constexpr wake_atom wake_atom_v{};
using probe_atom = caf::atom_constant<caf::atom("probe")>;
constexpr probe_atom probe_atom_v{};

/// A request as a batch sees it.
using decode_client_actor = caf::typed_actor<caf::reacts_to<token>, caf::reacts_to<preempted>,
                                             caf::reacts_to<sequence_failed>>;

/// The launcher of iterations as a shard sees it.
using launcher_actor = caf::typed_actor<caf::reacts_to<iteration_failed>>;

/// A requester that waits for slots, as an allocator sees it.
using kv_waiter_actor = caf::typed_actor<caf::reacts_to<kv_freed>>;

/// GPU EXECUTOR: one device and its streams. Runs work in order on the named stream and replies
/// when the work is done, or with an error when the work is aborted, misses its deadline or fails.
/// `wake` is internal: a mark has been reached.
using gpu_executor_actor =
    caf::typed_actor<caf::replies_to<stream_id, work_ptr, caf::timespan>::with<bool>,
                     caf::reacts_to<abort_atom, stream_id>,
                     caf::reacts_to<wake_atom, uint64_t, uint8_t>>;

/// ATTENTION SHARD: some KV heads of every request, all heads of some requests, or the parity of
/// the other shards' heads. Offers are for members of its own pool.
using attention_shard_actor =
    caf::typed_actor<caf::reacts_to<iteration_launch>, caf::replies_to<kv_trim>::with<bool>,
                     caf::replies_to<kv_pull>::with<kv_moved>, caf::reacts_to<kv_pull_cancel>,
                     caf::replies_to<kv_offer>::with<kv_moved>,
                     caf::replies_to<kv_check>::with<kv_checked>>;

/// KV SOURCE: the KV of a prefill worker, for shards to pull.
using kv_source_actor =
    caf::typed_actor<caf::replies_to<kv_offer>::with<kv_moved>, caf::reacts_to<kv_pull_cancel>>;

/// A new epoch of the pool. The KV of the shards in `empty` is lost; other holders keep their slots
/// if they resume them soon (L-M25).
struct kv_adopt {
  uint64_t epoch = 0;
  std::vector<attention_shard_actor> shards;
  std::vector<uint32_t> empty; ///< members without the KV of the previous epoch
  bool rebuilt = false;        ///< a shard's KV was reconstructed; slots without parity are missing
  bool parity_is_new = false;  ///< slots in use have no parity yet
};
LAMELLA_INSPECT(kv_adopt, x.epoch, x.shards, x.empty, x.rebuilt, x.parity_is_new)

/// KV ALLOCATOR: the slot tables of one pool. Not linked to a shard; outlives pipelines.
using kv_allocator_actor =
    caf::typed_actor<caf::replies_to<kv_reserve>::with<kv_grant>, caf::reacts_to<kv_release>,
                     caf::reacts_to<kv_filled>, caf::reacts_to<kv_doubt>, caf::reacts_to<kv_adopt>,
                     caf::replies_to<status_atom>::with<kv_usage>,
                     caf::replies_to<kv_inventory_ask>::with<kv_inventory>,
                     caf::replies_to<kv_sweep>::with<kv_swept>,
                     caf::replies_to<kv_protection>::with<bool>, caf::reacts_to<kv_pulled>,
                     caf::reacts_to<wake_atom>, caf::reacts_to<wake_atom, uint64_t>,
                     caf::reacts_to<caf::tick_atom>>;

/// MODEL REPLICA: weights and slice programs.
using model_replica_actor =
    caf::typed_actor<caf::reacts_to<iteration_launch>, caf::replies_to<sampled_of>::with<sampled>>;

/// PREFILL WORKER: computes the KV of prompts and samples their first tokens.
using prefill_worker_actor =
    caf::typed_actor<caf::replies_to<prefill>::with<prefilled>, caf::reacts_to<prefill_cancel>,
                     caf::reacts_to<iteration_failed>>;

/// Adds a sequence to the batch at the next iteration.
struct batch_join {
  sequence_id sequence{};
  decode_client_actor client;
  uint32_t member = 0;
  std::vector<slot_run> runs;
  uint32_t position = 0;   ///< of `last`: the number of tokens with K and V
  token_id last = 0;       ///< the newest token, not yet in the cache
  uint32_t generated = 1;  ///< tokens generated so far, `last` included
  uint32_t max_tokens = 0; ///< generated tokens at which it finishes
  sampling wanted;
  bool ignore_end = false;              ///< end tokens do not finish it
  std::vector<token_id> history_prompt; ///< empty unless penalties need it
  std::vector<token_id> history_output;
};
LAMELLA_INSPECT(batch_join, x.sequence, x.client, x.member, x.runs, x.position, x.last, x.generated,
                x.max_tokens, x.wanted, x.ignore_end, x.history_prompt, x.history_output)

/// Recomputation of lost KV on that prefill stream has started or ended (to batches that share its
/// processors).
struct kv_rebuilding {
  stream_id stream{};
  bool some = false;
};
LAMELLA_INSPECT(kv_rebuilding, x.stream, x.some)

/// BATCH: the decoding sequences; runs iterations while it has any. `wake`: its rest is over.
using batch_actor =
    caf::typed_actor<caf::reacts_to<batch_join>, caf::reacts_to<batch_leave>,
                     caf::reacts_to<iteration_failed>, caf::reacts_to<kv_rebuilding>,
                     caf::reacts_to<wake_atom>, caf::replies_to<status_atom>::with<uint32_t>>;

/// The batch of that stream is ready (to the global scheduler).
struct batch_ready {
  stream_id stream{};
  batch_actor handle;
};
LAMELLA_INSPECT(batch_ready, x.stream, x.handle)

/// GLOBAL SCHEDULER: admits sequences and places them. `wake`: checks again which sequences may
/// run.
using global_scheduler_actor =
    caf::typed_actor<caf::replies_to<admit>::with<admitted>, caf::reacts_to<withdraw>,
                     caf::reacts_to<retire>, caf::reacts_to<prefill_begun>,
                     caf::reacts_to<kv_freed>, caf::reacts_to<drain_atom>,
                     caf::reacts_to<batch_ready>, caf::reacts_to<wake_atom>,
                     caf::reacts_to<scheduler::admission_limits>,
                     caf::replies_to<status_atom>::with<uint64_t, uint64_t>>;

/// The actors that a worker process created for an epoch: replica or shard, by its role.
struct epoch_ready {
  model_replica_actor replica;
  attention_shard_actor shard;
  bool kept = false;      ///< the shard still has the KV of earlier epochs
  kv_source_actor source; ///< of a prefill worker with KV of its own; the shard is its own, too
};
LAMELLA_INSPECT(epoch_ready, x.replica, x.shard, x.kept, x.source)

/// The KV of a prefill worker; empty handles where it has none of its own.
struct prefill_kv {
  attention_shard_actor shard; ///< attends to its prompts
  kv_source_actor source;
};
LAMELLA_INSPECT(prefill_kv, x.shard, x.source)

/// WORKER: one seat in a process of its own; rebuilds its replica or shard for every epoch.
using worker_actor =
    caf::typed_actor<caf::replies_to<epoch_open>::with<epoch_ready>, caf::reacts_to<epoch_close>,
                     caf::reacts_to<worker_leave>, caf::reacts_to<worker_injury>,
                     caf::reacts_to<wake_atom>, caf::replies_to<status_atom>::with<worker_peers>>;

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
LAMELLA_INSPECT(worker_facts, x.handle, x.version, x.kernels, x.shapes, x.model_digest, x.address,
                x.device, x.sizes, x.refusal)

/// DOOR: authenticates joining workers; a worker without the secret is rejected.
using door_actor = caf::typed_actor<caf::replies_to<join_ask>::with<join_challenge>,
                                    caf::replies_to<join_proof>::with<join_grant>,
                                    caf::replies_to<worker_facts>::with<bool>>;

/// Properties that determine the bits of a pool's results (gpu::device_numerics).
struct pool_numerics {
  std::string kernels, sizes;
};
LAMELLA_INSPECT(pool_numerics, x.kernels, x.sizes)

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
LAMELLA_INSPECT(epoch_members, x.epoch, x.replicas, x.shards, x.empty, x.streams, x.own_kv,
                x.losses, x.caches, x.compute, x.attention)

/// MEMBERSHIP: seats, incarnations and epochs; their only writer (decision 21). `open` is answered
/// when all workers of the next epoch have created their part of it. Its argument is the epoch of
/// the sender's newest pipeline, 0 for none: replies about later epochs may have been lost.
using membership_actor = caf::typed_actor<
    caf::reacts_to<worker_info>, caf::replies_to<seat_ask>::with<join_grant>,
    caf::replies_to<worker_facts>::with<bool>,
    caf::replies_to<caf::open_atom, uint64_t>::with<epoch_members>,
    caf::reacts_to<wake_atom, std::string, uint32_t>, caf::reacts_to<worker_stopped>,
    caf::reacts_to<seat_failing>, caf::reacts_to<caf::tick_atom>, caf::reacts_to<probe_atom>,
    caf::replies_to<injure>::with<std::string>, caf::replies_to<status_atom>::with<system_status>>;

} // namespace lamella::actors
