/// Requests, sequences and their places in a batch.
#pragma once

#include "actors/protocol/actors.hpp"
#include "actors/protocol/kv_holding.hpp"
#include "actors/protocol/message.hpp"
#include "actors/protocol/values.hpp"
#include "scheduler/finish.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace lamella::actors {

/// Asks to admit a prompt with its choices.
struct admit {
  sequence_id first{};
  uint32_t choices = 1;
  uint32_t prompt_tokens = 0;
  bool resumed = false;
  bool has_kv = false; ///< its KV was complete in an earlier epoch
  kv_text text{};      ///< the tokens to prefill
};

struct admitted {
  stream_id batch{};
  uint32_t prefill_worker = 0;
  std::vector<kv_holding> holdings; ///< per choice: prompt and first window
};

/// What waits at GLOBAL SCHEDULER.
struct queue_status {
  uint64_t running = 0;   ///< sequences
  uint64_t waiting = 0;   ///< prompts
  uint64_t oldest_ms = 0; ///< how long the oldest of these has waited
};

/// Cancels an `admit` that is not answered yet.
struct withdraw {
  sequence_id first{};
};

/// A choice has left its batch: its seat is free.
struct retire {
  sequence_id sequence{};
  bool kept = false; ///< it yielded its seat and keeps its KV
};

using scheduler::finish;

/// A committed token of a sequence.
struct token {
  sequence_id sequence{};
  uint32_t index = 0; ///< of the generated token
  sampled_token value;
  finish reason = finish::none;
};

/// The prefill of a prompt has started: it left the queue (PREFILL WORKER to the scheduler and to
/// the request).
struct prefill_begun {
  sequence_id first{};
};

/// The first token of a prompt whose KV is still on its way to the shards (PREFILL WORKER to the
/// request, S-M13); `prefilled` brings it again.
struct first_token {
  sequence_id sequence{};
  uint32_t index = 0; ///< of the generated token
  sampled_token value;
};

/// The sequence lost its seat and may ask for admission again. Its KV was evicted for lack of
/// slots, or is `kept` because the sequence yielded.
struct preempted {
  sequence_id sequence{};
  bool kept = false;
  uint64_t epoch = 0; ///< of the batch; a message of an earlier epoch is ignored
};

/// The batch aborted this sequence.
struct sequence_failed {
  sequence_id sequence{};
  std::string reason;
  uint64_t epoch = 0; ///< as above
};

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
#define LAMELLA_REQUESTS_MESSAGES(x) \
  x(admit) x(admitted) x(withdraw) x(retire) x(prefill_begun) x(token) x(first_token) \
  x(preempted) x(sequence_failed) \
  x(batch_join) x(batch_leave) x(kv_rebuilding) x(hand_over) x(batch_ready) \
  x(queue_status)
// clang-format on
LAMELLA_REQUESTS_MESSAGES(LAMELLA_MADE_ELSEWHERE)
