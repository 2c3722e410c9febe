/// One interface per role, bottom-up, so that each can only mention the ones above it. Messages are
/// declared here and described in the header of their conversation, such as kv.hpp or epochs.hpp.
/// actors/README.md lists these.
///
/// Actors decide and enqueue; devices wait for devices. No message lies between two layers of a
/// token.
#pragma once

#include "actors/protocol/error.hpp"
#include "scheduler/types.hpp"

#include <caf/all.hpp>

#include <memory>
#include <set>
#include <string>
#include <vector>

namespace lamella::config {
struct pools_settings;
}
namespace lamella::gpu {
class work;
}
namespace lamella::model {
class constrained_answer;
}
namespace lamella::net {
class http_exchange;
}
namespace lamella::scheduler {
struct admission_limits;
struct kv_balance;
struct kv_move_piece;
struct kv_swept;
struct kv_usage;
struct seat;
} // namespace lamella::scheduler

namespace lamella::actors {

using scheduler::kv_balance;
using scheduler::kv_move_piece;
using scheduler::kv_swept;
using scheduler::kv_usage;
using scheduler::request_id;
using scheduler::sequence_id;
using scheduler::stream_id;

struct iteration_launch;
struct sampled_of;
struct sampled;
struct iteration_failed;
struct kv_reserve;
struct kv_grant;
struct kv_release;
struct kv_filled;
struct kv_doubt;
struct kv_freed;
struct kv_trim;
struct kv_inventory_ask;
struct kv_inventory;
struct kv_adopt;
struct admit;
struct admitted;
struct queue_status;
struct withdraw;
struct retire;
struct token;
struct first_token;
struct preempted;
struct sequence_failed;
struct batch_join;
struct batch_leave;
struct kv_rebuilding;
struct hand_over;
struct batch_ready;
struct prefill;
struct prefilled;
struct prefill_begun;
struct prefill_load;
struct prefill_cancel;
struct kv_pull;
struct kv_offer;
struct kv_moved;
struct kv_pull_cancel;
struct kv_move_begin;
struct kv_move_plan;
struct kv_move_ask;
struct kv_move_done;
struct kv_move_abort;
struct kv_balance_ask;
struct kv_sweep;
struct kv_protection;
struct kv_pulled;
struct kv_check;
struct kv_checked;
struct join_ask;
struct join_challenge;
struct join_proof;
struct join_grant;
struct seat_ask;
struct worker_facts;
struct epoch_open;
struct epoch_close;
struct epoch_next;
struct epoch_settled;
struct epoch_ready;
struct epoch_members;
struct worker_stopped;
struct seat_failing;
struct pool_resize;
struct worker_drain;
struct pool_change;
struct pool_balance;
struct pool_bounds;
struct worker_leave;
struct worker_injury;
struct injure;
struct worker_info;
struct system_status;
struct worker_peers;
struct watch_order;
struct watch_report;
struct supervisor_status;
struct trace_begin;
struct trace_begun;
struct trace_ask;
struct trace_page;
struct trace_workers_ask;
struct trace_workers;
struct aside_job;
struct cell_roster;
struct child_command;
struct aside_idle;
struct new_rules;
struct request_reading;
struct service;
struct supervision;
struct own_seat_lost;
enum class worker_news : uint8_t;

/// An HTTP request and its answer.
using exchange_ptr = std::shared_ptr<net::http_exchange>;
/// What a body asks for; see request_state.hpp.
using request_reading_ptr = std::shared_ptr<request_reading>;
/// What requests are served with; replaced when the pipeline is rebuilt.
using service_ptr = std::shared_ptr<const service>;

/// All worker processes that a keeper keeps.
using children_ptr = std::shared_ptr<const std::vector<child_command>>;

/// All seats of this process.
using seats_ptr = std::shared_ptr<const std::set<scheduler::seat>>;

/// The pools as configured.
using pools_ptr = std::shared_ptr<const config::pools_settings>;

/// The attention cells from now on; see cell_roster.hpp.
using cells_ptr = std::shared_ptr<const cell_roster>;

/// Work for a stream of an executor's device.
using work_ptr = std::shared_ptr<gpu::work>;

#define LAMELLA_ATOM(name)                                                                         \
  using name##_atom = caf::atom_constant<caf::atom(#name)>;                                        \
  constexpr name##_atom name##_atom_v{};
LAMELLA_ATOM(abort)
LAMELLA_ATOM(status)
LAMELLA_ATOM(drain)
LAMELLA_ATOM(wake)
LAMELLA_ATOM(probe)
LAMELLA_ATOM(begin)
LAMELLA_ATOM(cancel)
LAMELLA_ATOM(written)
LAMELLA_ATOM(expire)
LAMELLA_ATOM(lost)
LAMELLA_ATOM(reach)
#undef LAMELLA_ATOM

/// A request as batches and prefill workers see it.
using decode_client_actor =
    caf::typed_actor<caf::reacts_to<token>, caf::reacts_to<first_token>, caf::reacts_to<preempted>,
                     caf::reacts_to<sequence_failed>, caf::reacts_to<prefill_begun>>;

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

/// KV ALLOCATOR: the slot tables of one pool. Not linked to a shard; outlives pipelines.
using kv_allocator_actor = caf::typed_actor<
    caf::replies_to<kv_reserve>::with<kv_grant>, caf::reacts_to<kv_release>,
    caf::reacts_to<kv_filled>, caf::reacts_to<kv_doubt>, caf::reacts_to<kv_adopt>,
    caf::replies_to<status_atom>::with<kv_usage>,
    caf::replies_to<kv_inventory_ask>::with<kv_inventory>,
    caf::replies_to<kv_sweep>::with<kv_swept>, caf::replies_to<kv_protection>::with<bool>,
    caf::reacts_to<kv_pulled>, caf::replies_to<kv_move_begin>::with<kv_move_plan>,
    caf::replies_to<kv_move_ask>::with<kv_move_piece>, caf::replies_to<kv_move_done>::with<bool>,
    caf::reacts_to<kv_move_abort>, caf::replies_to<kv_balance_ask>::with<kv_balance>,
    caf::reacts_to<wake_atom>, caf::reacts_to<wake_atom, uint64_t>, caf::reacts_to<caf::tick_atom>>;

/// MODEL REPLICA: weights and slice programs.
using model_replica_actor =
    caf::typed_actor<caf::reacts_to<iteration_launch>, caf::replies_to<sampled_of>::with<sampled>>;

/// PREFILL WORKER: computes the KV of prompts and samples their first tokens.
using prefill_worker_actor =
    caf::typed_actor<caf::replies_to<prefill>::with<prefilled>, caf::reacts_to<prefill_cancel>,
                     caf::replies_to<hand_over>::with<bool>, caf::reacts_to<iteration_failed>>;

/// BATCH: the decoding sequences; runs iterations while it has any. `wake`: its rest is over.
using batch_actor =
    caf::typed_actor<caf::reacts_to<batch_join>, caf::reacts_to<batch_leave>,
                     caf::reacts_to<iteration_failed>, caf::reacts_to<kv_rebuilding>,
                     caf::replies_to<hand_over>::with<bool>, caf::reacts_to<wake_atom>,
                     caf::replies_to<status_atom>::with<uint32_t>>;

/// LANE: a BATCH, a PREFILL WORKER, or both in one: its launches are mixed then.
using lane_actor =
    batch_actor::extend<caf::replies_to<prefill>::with<prefilled>, caf::reacts_to<prefill_cancel>>;

/// GLOBAL SCHEDULER: admits sequences and places them. `wake`: checks again which sequences may
/// run.
using global_scheduler_actor = caf::typed_actor<
    caf::replies_to<admit>::with<admitted>, caf::reacts_to<withdraw>, caf::reacts_to<retire>,
    caf::reacts_to<prefill_begun>, caf::reacts_to<prefill_load>, caf::reacts_to<kv_freed>,
    caf::reacts_to<drain_atom>, caf::reacts_to<batch_ready>, caf::reacts_to<wake_atom>,
    caf::reacts_to<scheduler::admission_limits>, caf::replies_to<status_atom>::with<queue_status>>;

/// WORKER: one seat, in a process of its own or in this one; rebuilds its replica or shard for
/// every epoch.
using worker_actor =
    caf::typed_actor<caf::replies_to<epoch_open>::with<epoch_ready>, caf::reacts_to<epoch_close>,
                     caf::reacts_to<worker_leave>, caf::reacts_to<worker_injury>,
                     caf::reacts_to<wake_atom>, caf::replies_to<status_atom>::with<worker_peers>>;

/// DOOR: authenticates joining workers; a worker without the secret is rejected. worker_drain: a
/// worker that has joined wants to leave without a loss.
using door_actor = caf::typed_actor<
    caf::replies_to<join_ask>::with<join_challenge>, caf::replies_to<join_proof>::with<join_grant>,
    caf::replies_to<worker_facts>::with<bool>, caf::replies_to<worker_drain>::with<pool_change>>;

/// MEMBERSHIP: seats, incarnations and epochs; their only writer (decision 21). `open` is answered
/// when all workers of the next epoch have created their part of it. Its argument is the epoch of
/// the sender's newest pipeline, 0 for none: replies about later epochs may have been lost.
using membership_actor = caf::typed_actor<
    caf::replies_to<seat_ask>::with<join_grant>, caf::replies_to<worker_facts>::with<bool>,
    caf::replies_to<caf::open_atom, uint64_t>::with<epoch_members>,
    caf::replies_to<epoch_next>::with<epoch_members>, caf::reacts_to<epoch_settled>,
    caf::replies_to<pool_resize>::with<pool_change>,
    caf::replies_to<worker_drain>::with<pool_change>, caf::reacts_to<pool_balance>,
    caf::reacts_to<pool_bounds>, caf::replies_to<cells_ptr>::with<bool>,
    caf::reacts_to<wake_atom, std::string, uint32_t>, caf::reacts_to<worker_stopped>,
    caf::reacts_to<seat_failing>, caf::reacts_to<caf::tick_atom>, caf::reacts_to<probe_atom>,
    caf::replies_to<injure>::with<std::string>,
    caf::replies_to<trace_workers_ask>::with<trace_workers>,
    caf::replies_to<status_atom>::with<system_status>>;

/// WORKER with the messages that only MEMBERSHIP sends.
using watching_worker_actor =
    worker_actor::extend<caf::replies_to<watch_order>::with<watch_report>>;

/// WORKER with the messages that only TRACER sends.
using traced_worker_actor =
    watching_worker_actor::extend<caf::replies_to<trace_begin>::with<trace_begun>,
                                  caf::replies_to<trace_ask>::with<trace_page>>;

/// TRACER: one recording of all workers, from their order to its answer. `wake`: the recording is
/// over. `expire`: nobody is waited for any longer. `cancel`: the asker is gone.
using tracer_actor = caf::typed_actor<caf::reacts_to<wake_atom>, caf::reacts_to<expire_atom>,
                                      caf::reacts_to<cancel_atom>>;

/// MASK MAKER: computes which tokens may come next in answers with a format. Answered when the mask
/// is computed. Requests are answered one after the other, in order of arrival; a sender has at
/// most one open request per sequence.
using mask_maker_actor =
    caf::typed_actor<caf::replies_to<model::constrained_answer>::with<model::constrained_answer>>;

/// ASIDE: long computations, outside the actors; its workers.
using aside_worker_actor = caf::typed_actor<caf::reacts_to<aside_job>>;
/// A job: the next free worker of its lane runs it, the oldest first.
using aside_actor = caf::typed_actor<caf::reacts_to<aside_job>, caf::reacts_to<aside_idle>>;

/// CHILD KEEPER: the worker processes of `placement: local`. Receives the state of the workers of
/// its processes, by process id, and the list of processes when it changes.
using child_keeper_actor =
    caf::typed_actor<caf::reacts_to<caf::tick_atom>, caf::reacts_to<uint32_t, worker_news>,
                     caf::reacts_to<children_ptr>, caf::replies_to<caf::close_atom>::with<uint32_t>,
                     caf::replies_to<status_atom>::with<supervisor_status>>;

/// OWN SEATS: the WORKERs of this process. `open`: take all seats at this MEMBERSHIP; answered when
/// they are taken. `begin`: a pipeline was built of them. A list of seats: pools of this process
/// have other sizes. `wake`: the seat of that number may be taken again.
using own_seats_actor =
    caf::typed_actor<caf::replies_to<caf::open_atom, membership_actor>::with<bool>,
                     caf::reacts_to<own_seat_lost>, caf::reacts_to<begin_atom>,
                     caf::reacts_to<wake_atom, uint32_t>, caf::reacts_to<seats_ptr>,
                     caf::replies_to<status_atom>::with<supervisor_status>>;

/// AUTOSCALER: at each tick looks at the load, and asks MEMBERSHIP for other sizes of the pools.
/// Pools: their bounds are other ones from now on.
using autoscaler_actor =
    caf::typed_actor<caf::reacts_to<caf::tick_atom>, caf::reacts_to<pools_ptr>>;

/// CANARY: a request of our own, at each tick, where no other runs.
using canary_actor = caf::typed_actor<caf::reacts_to<caf::tick_atom>>;

/// REQUEST: one HTTP request and its sequences. `begin`: parse the body. request_reading: the body
/// is parsed; ask for admission. `cancel`: the client is gone. `written`: the socket has written
/// the data. `tick`: open the stream or ping. `expire`: the deadline has passed. `drain`: the
/// service shuts down before the request ends. `lost`: the pipeline is lost. A service: the
/// pipeline was rebuilt.
using request_actor =
    caf::typed_actor<caf::reacts_to<begin_atom>, caf::reacts_to<request_reading_ptr>,
                     caf::reacts_to<cancel_atom>, caf::reacts_to<written_atom>,
                     caf::reacts_to<caf::tick_atom>, caf::reacts_to<expire_atom>,
                     caf::reacts_to<drain_atom>, caf::reacts_to<lost_atom>,
                     caf::reacts_to<service_ptr>>::extend_with<decode_client_actor>;

/// GATEWAY: routes HTTP requests. `exchange`: an HTTP request to route. A service: the model is
/// loaded, or the pipeline was rebuilt. `drain`: accept no new request; answered when the last
/// request has ended. `lost`: there is no pipeline until the next service. `tick`: checks paused
/// requests.
using gateway_actor = caf::typed_actor<caf::reacts_to<exchange_ptr>, caf::reacts_to<service_ptr>,
                                       caf::replies_to<drain_atom>::with<bool>,
                                       caf::reacts_to<membership_actor>, caf::reacts_to<wake_atom>,
                                       caf::reacts_to<lost_atom>, caf::reacts_to<caf::tick_atom>,
                                       caf::reacts_to<supervision>, caf::reacts_to<new_rules>>;

} // namespace lamella::actors

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(lamella::actors::work_ptr)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(lamella::actors::children_ptr)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(lamella::actors::seats_ptr)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(lamella::actors::pools_ptr)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(lamella::actors::cells_ptr)
