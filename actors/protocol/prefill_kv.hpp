/// The actors of a prefill worker's own KV: a part of messages about epochs.
#pragma once

#include "actors/protocol/actors.hpp"
#include "actors/protocol/message.hpp"

namespace lamella::actors {

/// The KV of a prefill worker; empty handles where it has none of its own.
struct prefill_kv {
  attention_shard_actor shard; ///< attends to its prompts
  kv_source_actor source;
};

} // namespace lamella::actors
LAMELLA_PART(prefill_kv)
