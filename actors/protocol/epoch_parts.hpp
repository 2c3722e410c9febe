/// Parts of messages about epochs, and of those about links between workers.
#pragma once

#include "actors/protocol/actors.hpp"
#include "actors/protocol/message.hpp"

#include <cstdint>
#include <string>

namespace lamella::actors {

/// A worker of an epoch as its peers see it.
struct epoch_peer {
  std::string seat, address; ///< of its end of the data plane
  uint16_t number = 0;       ///< of the seat; frames carry it with the incarnation
  uint32_t incarnation = 0;
};

/// What a prefill worker with KV of its own computes prompts with; empty handles where it has none.
struct prefill_kv {
  model_replica_actor replica; ///< whose attention is at `shard`
  attention_shard_actor shard;
  kv_source_actor source;
};

} // namespace lamella::actors
LAMELLA_PART(epoch_peer)
LAMELLA_PART(prefill_kv)
