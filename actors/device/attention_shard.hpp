/// ATTENTION SHARD: attention and KV cache on one memory device.
#pragma once

#include "actors/device/attention_shard_state.hpp"

namespace lamella::actors {

attention_shard_actor::behavior_type
attention_shard(attention_shard_actor::stateful_pointer<attention_shard_state> self,
                shard_config config, gpu_executor_actor executor);

} // namespace lamella::actors
