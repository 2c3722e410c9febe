/// Messages between the control process and worker processes: joining, seats, epochs. Workers
/// never hold each other's handles, only addresses of the data plane (decision 28).
#pragma once

#include "actors/protocol/status_messages.hpp"
#include "gpu/kernels/operators.hpp"
#include "scheduler/membership/epoch_plan.hpp"

#include <string>
#include <vector>

namespace lamella::scheduler {

template <class Inspector> typename Inspector::result_type inspect(Inspector& f, stream_place& x) {
  return f(caf::meta::type_name("stream_place"), x.stream, x.replica);
}

} // namespace lamella::scheduler

namespace lamella::actors {

using scheduler::stream_place;

/// Version of the join protocol; a join with another version is rejected with both values.
constexpr uint32_t join_protocol = 4;
/// Bytes of a nonce.
constexpr size_t nonce_bytes = 32;
/// No preference for a seat.
constexpr uint32_t any_seat = ~0u;

/// A worker process asks to join.
struct join_ask {
  uint32_t protocol = join_protocol;
  std::string role, name, version, host;
  uint32_t pid = 0;
  uint32_t wish = any_seat; ///< index of the preferred seat
  uint32_t heartbeat_ms = 0, dead_ms = 0;
  std::string nonce;
};

/// Asks for a proof of the shared secret.
struct join_challenge {
  std::string cluster, nonce;
};

struct join_proof {
  std::string nonce; ///< of the challenge
  std::string proof;
};

/// Configuration of a worker, sent by the service: a worker reads no settings that could differ.
struct worker_terms {
  // The model. Its path is a default: a worker may have its own.
  std::string model_path;
  uint64_t model_digest = 0;
  std::string version, kernels, shapes;
  std::string device;   ///< of the pool's option; a worker may have its own
  uint32_t threads = 0; ///< 0: the processors it may use
  uint32_t ranks = 1;   ///< tensor-parallel devices of this worker, from `device` on (L-M03)
  gpu::half_type wire = gpu::half_type::f16, kv = gpu::half_type::f16;
  uint32_t layers = 0, kv_heads = 0, group = 0, head_dim = 0;
  float scale = 1;
  // The pools.
  uint32_t shards = 0;
  bool whole_requests = false;
  uint32_t slots = 0; ///< of this shard, or of this prefill worker's own KV
  uint32_t rows = 0;  ///< of the largest iteration
  bool prefill_owns_kv = false;
  // The data plane.
  std::string transport;
  std::string link_secret;
  uint32_t link_cluster = 0;
  std::string link_folder; ///< of the control process, for the sockets of its children
  uint64_t decode_frame_bytes = 0, prefill_frame_bytes = 0; ///< largest frame of such a stream
  uint64_t decode_rank_bytes = 0, prefill_rank_bytes = 0;   ///< the same between ranks of a replica
  uint64_t own_frame_bytes = 0;    ///< between a prefill worker's replica and its own shard
  uint64_t parity_frame_bytes = 0; ///< to the shard behind the others, which holds their parity
  uint64_t member_frame_bytes = 0; ///< between shards of a pool with parity
  uint32_t link_patience_ms = 10'000;
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
  uint32_t wish = any_seat;
  std::string proof; ///< for the grant
};

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

/// Work that the device of a worker did since the worker took its seat.
struct work_done {
  uint64_t iterations = 0;
  uint64_t units = 0; ///< rows of a replica, attended positions of a shard
  uint64_t busy_ns = 0;
};

/// Durations of one stage of its iterations, since it took its seat.
struct stage_report {
  std::vector<uint64_t> counts; ///< by bucket of base/time_counts.hpp; empty: none
  uint64_t total_ns = 0;
};

/// The peers of a worker in the open epoch, and its work.
struct worker_peers {
  std::vector<peer_info> peers;
  work_done work{};
  uint64_t computed_ns = 0; ///< of its device, work that is not compared with peers included
  std::vector<stage_report> stages{}; ///< by net::iteration_stage
  std::vector<uint64_t> dropped{};    ///< frames since it took its seat, by net::frame_fault
  uint64_t log_dropped = 0;           ///< lines of its log, since it took its seat
};

LAMELLA_INSPECT(work_done, x.iterations, x.units, x.busy_ns)
LAMELLA_INSPECT(stage_report, x.counts, x.total_ns)
LAMELLA_INSPECT(worker_peers, x.peers, x.work, x.computed_ns, x.stages, x.dropped, x.log_dropped)
LAMELLA_INSPECT(join_ask, x.protocol, x.role, x.name, x.version, x.host, x.pid, x.wish,
                x.heartbeat_ms, x.dead_ms, x.nonce)
LAMELLA_INSPECT(join_challenge, x.cluster, x.nonce)
LAMELLA_INSPECT(join_proof, x.nonce, x.proof)
LAMELLA_INSPECT(worker_terms, x.model_path, x.model_digest, x.version, x.kernels, x.shapes,
                x.device, x.threads, x.ranks, x.wire, x.kv, x.layers, x.kv_heads, x.group,
                x.head_dim, x.scale, x.shards, x.whole_requests, x.slots, x.rows, x.prefill_owns_kv,
                x.transport, x.link_secret, x.link_cluster, x.link_folder, x.decode_frame_bytes,
                x.prefill_frame_bytes, x.decode_rank_bytes, x.prefill_rank_bytes, x.own_frame_bytes,
                x.parity_frame_bytes, x.member_frame_bytes, x.link_patience_ms, x.chaos)
LAMELLA_INSPECT(join_grant, x.proof, x.role, x.index, x.incarnation, x.epoch, x.terms)
LAMELLA_INSPECT(seat_ask, x.role, x.name, x.host, x.pid, x.wish, x.proof)
LAMELLA_INSPECT(epoch_peer, x.seat, x.address, x.number, x.incarnation)
LAMELLA_INSPECT(epoch_open, x.epoch, x.streams, x.replicas, x.shards, x.number)
LAMELLA_INSPECT(epoch_close, x.epoch)
LAMELLA_INSPECT(epoch_lost, x.epoch, x.grown, x.role, x.reason)
LAMELLA_INSPECT(worker_stopped, x.pid)
LAMELLA_INSPECT(seat_failing, x.role, x.index, x.how, x.faults)
LAMELLA_INSPECT(worker_leave, x.reason)
LAMELLA_INSPECT(worker_injury, x.what, x.duration_ms)
LAMELLA_INSPECT(injure, x.target, x.injury, x.chance)

} // namespace lamella::actors
