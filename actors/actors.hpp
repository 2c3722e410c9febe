/// One interface per role, bottom-up, so that each can only mention the ones above it.
///
/// Actors decide and enqueue; devices wait for devices. No message lies between two layers of a
/// token.
#pragma once

#include "actors/error.hpp"
#include "actors/messages.hpp"

namespace lamella::actors {

using abort_atom = caf::atom_constant<caf::atom("abort")>;
constexpr abort_atom abort_atom_v{};
using status_atom = caf::atom_constant<caf::atom("status")>;
constexpr status_atom status_atom_v{};
using drain_atom = caf::atom_constant<caf::atom("drain")>;
constexpr drain_atom drain_atom_v{};
using wake_atom = caf::atom_constant<caf::atom("wake")>;
constexpr wake_atom wake_atom_v{};

/// What a batch knows of a request.
using decode_client_actor = caf::typed_actor<caf::reacts_to<token>, caf::reacts_to<preempted>,
                                             caf::reacts_to<sequence_failed>>;

/// What a shard knows of whoever launches iterations.
using launcher_actor = caf::typed_actor<caf::reacts_to<iteration_failed>>;

/// What an allocator knows of whoever waits for slots.
using kv_waiter_actor = caf::typed_actor<caf::reacts_to<kv_freed>>;

/// GPU EXECUTOR: one device and its streams. Runs work in order on the named stream and answers
/// when it has ended well; ends it with an error when it is aborted, outlives its deadline or
/// fails. `wake` is internal: a mark has been reached.
using gpu_executor_actor =
    caf::typed_actor<caf::replies_to<stream_id, work_ptr, caf::timespan>::with<bool>,
                     caf::reacts_to<abort_atom, stream_id>,
                     caf::reacts_to<wake_atom, uint64_t, uint8_t>>;

/// ATTENTION SHARD: some KV heads of every request, or all heads of some requests.
using attention_shard_actor =
    caf::typed_actor<caf::reacts_to<iteration_launch>, caf::replies_to<kv_trim>::with<bool>>;

/// KV ALLOCATOR: the slot tables of one pool. Not linked to a shard.
using kv_allocator_actor =
    caf::typed_actor<caf::replies_to<kv_reserve>::with<kv_grant>, caf::reacts_to<kv_release>,
                     caf::replies_to<status_atom>::with<kv_usage>, caf::reacts_to<wake_atom>>;

/// MODEL REPLICA: weights and slice programs.
using model_replica_actor =
    caf::typed_actor<caf::reacts_to<iteration_launch>, caf::replies_to<sampled_of>::with<sampled>>;

/// PREFILL WORKER: prompts to first tokens and a filled KV cache.
using prefill_worker_actor =
    caf::typed_actor<caf::replies_to<prefill>::with<prefilled>, caf::reacts_to<prefill_cancel>,
                     caf::reacts_to<iteration_failed>>;

/// A sequence takes a seat at the next iteration.
struct batch_join {
  sequence_id sequence{};
  decode_client_actor client;
  uint32_t member = 0;
  std::vector<slot_run> runs;
  uint32_t position = 0;   ///< of `last`: the number of tokens with K and V
  token_id last = 0;       ///< the newest token, not yet in the cache
  uint32_t generated = 1;  ///< tokens generated so far, `last` included
  uint32_t max_tokens = 0; ///< it ends with this many
  sampling wanted;
  bool ignore_end = false;              ///< end tokens do not end it
  std::vector<token_id> history_prompt; ///< where penalties need them
  std::vector<token_id> history_output;
};
LAMELLA_INSPECT(batch_join, x.sequence, x.client, x.member, x.runs, x.position, x.last, x.generated,
                x.max_tokens, x.wanted, x.ignore_end, x.history_prompt, x.history_output)

/// BATCH: who sits in it; runs iterations while somebody does.
using batch_actor = caf::typed_actor<caf::reacts_to<batch_join>, caf::reacts_to<batch_leave>,
                                     caf::reacts_to<iteration_failed>,
                                     caf::replies_to<status_atom>::with<uint32_t>>;

/// GLOBAL SCHEDULER: who may start, and where.
using global_scheduler_actor =
    caf::typed_actor<caf::replies_to<admit>::with<admitted>, caf::reacts_to<withdraw>,
                     caf::reacts_to<retire>, caf::reacts_to<kv_freed>, caf::reacts_to<drain_atom>,
                     caf::replies_to<status_atom>::with<uint64_t, uint64_t>>;

/// MEMBERSHIP: seats, incarnations and epochs; their only writer.
using membership_actor = caf::typed_actor<caf::reacts_to<worker_info>,
                                          caf::replies_to<status_atom>::with<system_status>>;

} // namespace lamella::actors
