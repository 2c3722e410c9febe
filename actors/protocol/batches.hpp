/// Sequences join and leave batches; batches hand over.
#pragma once

#include "actors/protocol/actors.hpp"
#include "actors/protocol/message.hpp"
#include "actors/protocol/values.hpp"

#include <cstdint>
#include <vector>

namespace lamella::actors {

/// Adds a sequence to the batch at the next iteration.
struct batch_join {
  sequence_id sequence{};
  decode_client_actor client;
  uint32_t member = 0;
  std::vector<slot_run> runs;
  uint32_t position = 0;   ///< of `last`: the number of tokens with K and V
  token_id last = 0;       ///< the newest token, not yet in the cache
  uint32_t generated = 1;  ///< tokens generated so far, `last` included
  uint32_t max_tokens = 0; ///< generated tokens at which it finishes
  sampling wanted;
  bool ignore_end = false;              ///< end tokens do not finish it
  std::vector<token_id> history_prompt; ///< empty unless penalties need it
  std::vector<token_id> history_output;
};

/// Removes the sequence from the batch; its seat is freed after the running iteration. With `tell`
/// it yields and keeps its slots: `preempted` is sent when its seat is free. Without, its slots are
/// freed too, so this may be sent only to the batch that it joined last.
struct batch_leave {
  sequence_id sequence{};
  bool tell = false;
};

/// Recomputation of lost KV on that prefill stream has started or ended (to batches that share its
/// processors).
struct kv_rebuilding {
  stream_id stream{};
  bool some = false;
};

/// Has a batch tell the allocator what is committed; answered when the iteration that runs has
/// ended. With `stop`, a batch or a prefill worker launches nothing more, because another pipeline
/// takes over; answered when its devices have ended what was launched.
struct hand_over {
  bool stop = false;
};

/// The batch of that stream is ready (to the global scheduler).
struct batch_ready {
  stream_id stream{};
  batch_actor handle;
};

} // namespace lamella::actors

// clang-format off
#define LAMELLA_BATCHES_MESSAGES(x) \
  x(batch_join) x(batch_leave) x(kv_rebuilding) x(hand_over) x(batch_ready)
// clang-format on
LAMELLA_BATCHES_MESSAGES(LAMELLA_MADE_ELSEWHERE)
