/// MODEL REPLICA: weights and slice programs on a compute device.
#pragma once

#include "actors/actors.hpp"
#include "gpu/slice_runner.hpp"
#include "net/fabric.hpp"
#include "net/metrics.hpp"
#include "scheduler/seat_table.hpp"

#include <map>
#include <memory>

namespace lamella::actors {

/// What a replica is made of; fixed while it lives.
struct replica_config {
  uint32_t seat = 0;
  uint32_t shards = 1;         ///< members of the attention pool
  bool whole_requests = false; ///< the pool is partitioned by request
  gpu::half_type wire = gpu::half_type::f16;
  const gpu::operators* ops = nullptr;
  std::shared_ptr<const model::model_program> program;
  std::shared_ptr<const gpu::packed_weights> weights;
  std::shared_ptr<net::fabric> links;
  std::shared_ptr<net::metrics> numbers;            ///< may be null
  caf::timespan patience{std::chrono::seconds{60}}; ///< deadline of an iteration
};

struct model_replica_state {
  replica_config config;
  gpu_executor_actor executor;
  /// An iteration that was launched, and who waits for its tokens.
  struct iteration_state {
    uint64_t iteration = 0;
    uint32_t attempt = 0;
    std::optional<caf::expected<sampled>> outcome;
    std::optional<caf::typed_response_promise<sampled>> asked;
  };
  struct stream_state {
    scheduler::seat_copy seats;
    std::shared_ptr<gpu::slice_stream_state> device = std::make_shared<gpu::slice_stream_state>();
    std::vector<net::link_end> links; ///< by shard
    uint64_t epoch = 0;
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
