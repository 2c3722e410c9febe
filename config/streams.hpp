/// Streams that executors and shards serve: what the service opens, and what rules count.
#pragma once

#include "config/settings.hpp"

#include <cstdint>

namespace lamella::config {

/// Streams of prefill workers; none where all prompts are in the launches of batches.
uint32_t prompt_streams(const settings& x);

/// Batches on prefill seats: with mixed launches a prefill worker can decode as replicas can
/// compute prompts (S-M03), one with KV of its own where prompts overflow, too. One per seat; 0
/// where not so.
uint32_t prompt_batches(const settings& x);

/// Streams for prompts on replicas that decode, beside prefill workers with own KV: for those with
/// a prefix-cache hit, since these workers do not have the KV of the shards, and for those that
/// overflow (S-M07). One per replica; 0 where not needed.
uint32_t mixed_streams(const settings& x);

/// Batches whose launches have prompts (S-M02): all of them, those on prefill seats included, or
/// none. Beside prefill workers with own KV they compute what mixed_streams() would.
uint32_t mixed_batches(const settings& x);

/// All streams that an executor of a replica, or a shard, serves: of batches and of prompts.
uint32_t served_streams(const settings& x);

} // namespace lamella::config
