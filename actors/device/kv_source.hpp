/// KV SOURCE: KV for shards to pull, of a prefill worker or of a shard of the epoch before.
#pragma once

#include "actors/protocol/actors.hpp"
#include "actors/protocol/pulls.hpp"
#include "gpu/runners/kv_transfer.hpp"
#include "net/link/fabric.hpp"
#include "scheduler/kv_layout.hpp"

#include <map>
#include <memory>

namespace lamella::actors {

/// Configuration of a source; immutable.
struct kv_source_config {
  uint32_t seat = 0;           ///< its number among the replicas
  uint32_t shards = 1;         ///< that pull, the one of the parity included
  scheduler::kv_layout layout; ///< of the attention pool
  std::shared_ptr<gpu::device> device;
  std::shared_ptr<gpu::kv_cache> cache;
  std::shared_ptr<gpu::kv_hand_over> hand_over; ///< null: no iteration waits for its reads
  std::function<bool()> may_step{}; ///< whether a step of an offer may run now; empty: always
  net::link_source links;           ///< this seat's end of the link to a shard, connected
};

struct kv_source_state {
  kv_source_config config;
  gpu_executor_actor executor;
  std::map<uint32_t, net::link_end> links; ///< by shard; an epoch has a source of its own
  const char* name = "kv_source";
};

/// Each shard's offers run on a stream of their own, so that a slow shard does not delay others.
kv_source_actor::behavior_type kv_source(kv_source_actor::stateful_pointer<kv_source_state> self,
                                         kv_source_config config, gpu_executor_actor executor);

} // namespace lamella::actors
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(lamella::actors::kv_source_config)
