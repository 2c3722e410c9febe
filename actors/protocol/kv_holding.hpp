/// What a sequence asks KV for and what it gets: parts of messages about KV and requests.
#pragma once

#include "actors/protocol/message.hpp"
#include "actors/protocol/values.hpp"

#include <cstdint>
#include <vector>

namespace lamella::actors {

/// The tokens of a sequence from position 0 on, as the key of its KV in the prefix cache. Without
/// tokens, the sequence does not use the cache.
struct kv_text {
  uint64_t scope = 0; ///< sequences of different scopes share nothing
  std::vector<token_id> tokens;
  bool computed = false; ///< takes nothing from the cache: every row of it is to be computed
};

/// Slots of a sequence.
struct kv_holding {
  sequence_id holder{};
  uint32_t member = 0;        ///< the table of its slots
  std::vector<slot_run> runs; ///< the added slots, shared ones first; go_on: all
  bool kept = false;          ///< go_on: the previous holding is still valid
  uint32_t cached = 0;        ///< else: its first positions with KV from the prefix cache
};

} // namespace lamella::actors
LAMELLA_PART(kv_text)
LAMELLA_PART(kv_holding)
