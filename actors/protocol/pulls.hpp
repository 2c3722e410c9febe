/// Pulls: K and V that a shard takes from a prefill worker or another member of its pool.
#pragma once

#include "actors/protocol/actors.hpp"
#include "actors/protocol/message.hpp"
#include "actors/protocol/values.hpp"

#include <cstdint>
#include <vector>

namespace lamella::actors {

/// Makes a shard pull the KV of some rows, all layers, from the prefill worker of that stream into
/// slots of its own (decision 27), or from a member of its pool over that stream (reliability A6).
/// Answered with kv_moved when the last layer has arrived.
struct kv_pull {
  stream_id stream{};
  uint64_t epoch = 0;
  uint64_t number = 0; ///< increases with each pull of the stream
  std::vector<slot_run> runs;
  bool add = false;                   ///< XOR the rows into what the slots hold
  uint32_t first_head = 0, heads = 0; ///< of this side's cache; no heads: all
};

/// Gives the sending side of the same pull its rows.
struct kv_offer {
  stream_id stream{};
  uint64_t epoch = 0;
  uint64_t number = 0;
  uint32_t shard = 0;
  std::vector<slot_run> runs; ///< of this side
  uint64_t iteration = 0;     ///< that writes the rows layer by layer; 0: the rows are complete
  uint32_t first_head = 0, heads = 0; ///< of this side's cache; no heads: those of the shard
};

/// Result of one side of a pull; the rows are complete when both sides' digests match.
struct kv_moved {
  uint64_t number = 0;
  uint64_t digest = 0;
  uint64_t bytes = 0;
};

/// Aborts all active pulls of that stream; each is then answered with an error.
struct kv_pull_cancel {
  stream_id stream{};
};

} // namespace lamella::actors

// clang-format off
#define LAMELLA_PULLS_MESSAGES(x) \
  x(kv_pull) x(kv_offer) x(kv_moved) x(kv_pull_cancel)
// clang-format on
LAMELLA_PULLS_MESSAGES(LAMELLA_MADE_ELSEWHERE)
