/// MODEL REPLICA: weights and slice programs on a compute device, or on several as ranks (L-M03).
#pragma once

#include "actors/protocol/actors.hpp"
#include "actors/protocol/iterations.hpp"
#include "actors/shared/work_meter.hpp"
#include "gpu/runners/slice_runner.hpp"
#include "net/link/fabric.hpp"
#include "net/metrics/metrics.hpp"
#include "scheduler/kv_layout.hpp"
#include "scheduler/seat_table.hpp"

#include <map>
#include <memory>

namespace lamella::actors {

/// A further device (rank 1, 2, ...) of a tensor-parallel replica, with its share of the weights.
struct replica_rank {
  std::shared_ptr<gpu::device> device;
  std::shared_ptr<const gpu::packed_weights> weights;
  gpu_executor_actor executor;
};

/// State of a stream at the ranks of a replica, by rank.
struct ready_stream {
  uint64_t epoch = 0;
  std::vector<std::shared_ptr<gpu::slice_stream_state>> devices;
  std::vector<std::shared_ptr<const gpu::rank_group>> ranks; ///< empty for one alone
};

/// Configuration of a replica; immutable.
struct replica_config {
  uint32_t seat = 0;
  scheduler::kv_layout layout{{{}}}; ///< of the attention pool
  /// Largest frame to a shard with parity, which follow the others (decision 23).
  uint64_t parity_frame_bytes = 0;
  gpu::half_type wire = gpu::half_type::f16, kv = gpu::half_type::f16; ///< kv: of the shards
  uint32_t mini_batches = 1; ///< of a shard's rows, as the shards have it
  std::shared_ptr<gpu::device> device;
  std::shared_ptr<const model::model_program> program;
  std::shared_ptr<const gpu::packed_weights> weights;
  std::vector<replica_rank> others; ///< ranks 1, 2, ...; the shards see rank 0 only
  /// Largest frame between ranks, of a batch and of prompts; unused where there is one rank.
  uint64_t decode_rank_bytes = 0, prefill_rank_bytes = 0;
  net::link_source links; ///< this seat's end of a link, connected
  /// The replicas of a stream, by turn (L-M17); empty: this one runs them all alone.
  std::function<std::vector<uint32_t>(stream_id)> replicas_of{};
  std::shared_ptr<net::metrics> metrics; ///< may be null
  std::shared_ptr<work_meter> meter;     ///< counts rows; may be null
  /// Prepared streams. Other streams are set up with their first launch.
  std::map<stream_id, ready_stream> ready{};
};

/// Allocates device resources of these streams for that epoch, before the replica is spawned; rank
/// groups are rebuilt at the launch after an abort. Allocation may wait until a device is idle: a
/// launch that waits for it could deadlock with a shard on the same device, which waits for that
/// launch.
void make_ready(replica_config& config, uint64_t epoch, const std::vector<stream_id>& streams);

struct model_replica_state {
  replica_config config;
  gpu_executor_actor executor;
  /// A launched iteration, and the requester of its tokens.
  struct iteration_state {
    uint64_t iteration = 0;
    uint32_t attempt = 0;
    std::optional<caf::expected<sampled>> outcome;
    std::optional<caf::typed_response_promise<sampled>> asked;
  };
  struct stream_state {
    scheduler::seat_copy seats;
    std::vector<std::shared_ptr<gpu::slice_stream_state>> devices; ///< by rank
    std::vector<net::link_end> links;                              ///< by shard
    uint32_t replicas = 1, turn = 0; ///< that run its slices in turn, and this one's turn
    gpu::runner_link context;        ///< to the neighbours in the rotation
    std::vector<std::shared_ptr<const gpu::rank_group>> ranks; ///< by rank; empty for one alone
    uint64_t epoch = 0;
    uint64_t aborts = 0;                     ///< number of aborts of all ranks
    caf::actor_clock::time_point ended{};    ///< of the newest finished iteration
    std::vector<iteration_state> iterations; ///< at most two: one runs, one is queued behind it
  };
  std::map<stream_id, stream_state> streams;
  const char* name = "model_replica";
};

model_replica_actor::behavior_type
model_replica(model_replica_actor::stateful_pointer<model_replica_state> self,
              replica_config config, gpu_executor_actor executor);

} // namespace lamella::actors
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(lamella::actors::replica_config)
