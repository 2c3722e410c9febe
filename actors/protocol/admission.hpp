/// Requests ask for admission, and give up their places.
#pragma once

#include "actors/protocol/actors.hpp"
#include "actors/protocol/kv_holding.hpp"
#include "actors/protocol/message.hpp"
#include "actors/protocol/values.hpp"

#include <cstdint>
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

/// The prefill of a prompt has started: it left the queue (PREFILL WORKER to the scheduler and to
/// the request).
struct prefill_begun {
  sequence_id first{};
};

} // namespace lamella::actors

// clang-format off
#define LAMELLA_ADMISSION_MESSAGES(x) \
  x(admit) x(admitted) x(withdraw) x(retire) x(prefill_begun) x(queue_status)
// clang-format on
LAMELLA_ADMISSION_MESSAGES(LAMELLA_MADE_ELSEWHERE)
