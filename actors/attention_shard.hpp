/// ATTENTION SHARD: attention and KV cache on one memory device.
#pragma once

#include "actors/actors.hpp"
#include "gpu/attention_runner.hpp"
#include "gpu/kv_cache.hpp"
#include "net/fabric.hpp"
#include "net/metrics.hpp"
#include "scheduler/seat_table.hpp"

#include <map>
#include <memory>

namespace lamella::actors {

/// What a shard is made of; fixed while it lives.
struct shard_config {
  uint32_t seat = 0;           ///< member of its pool
  bool whole_requests = false; ///< request partition: only spans of this member are ours
  uint32_t group = 1;
  float scale = 1;
  gpu::half_type wire = gpu::half_type::f16;
  const gpu::operators* ops = nullptr;
  std::shared_ptr<gpu::kv_cache> cache;
  std::shared_ptr<net::fabric> links;
  std::shared_ptr<net::metrics> numbers; ///< may be null
  std::function<uint32_t(stream_id)> replica_of;
  caf::timespan patience{std::chrono::seconds{60}}; ///< deadline of an iteration
};

struct attention_shard_state {
  shard_config config;
  gpu_executor_actor executor;
  /// What an iteration of a stream needs from the one before.
  struct stream_state {
    scheduler::seat_copy seats;
    net::link_end link;
    uint64_t epoch = 0;
  };
  std::map<stream_id, stream_state> streams;
  const char* name = "attention_shard";
};

attention_shard_actor::behavior_type
attention_shard(attention_shard_actor::stateful_pointer<attention_shard_state> self,
                shard_config config, gpu_executor_actor executor);

} // namespace lamella::actors
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(lamella::actors::shard_config)
