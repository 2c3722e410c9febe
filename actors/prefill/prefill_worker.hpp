/// PREFILL WORKER: computes the KV of prompts and samples their first tokens.
#pragma once

#include "actors/prefill/prefill_worker_state.hpp"

namespace lamella::actors {

/// Cuts prompts into chunks and runs them on its own stream of a replica and shards. Without own
/// KV, the shards are those of the pool, and K and V are sent to them directly; with own KV, the
/// shard is its own, and the pool's shards pull (decision 26).
prefill_worker_actor::behavior_type prefill_worker(prefill_ptr self, prefill_worker_config config);

} // namespace lamella::actors
