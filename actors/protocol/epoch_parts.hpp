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

/// The KV of a prefill worker; empty handles where it has none of its own.
struct prefill_kv {
  attention_shard_actor shard; ///< attends to its prompts
  kv_source_actor source;
};

} // namespace lamella::actors
LAMELLA_PART(epoch_peer)
LAMELLA_PART(prefill_kv)
