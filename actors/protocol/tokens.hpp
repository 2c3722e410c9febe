/// What becomes of a sequence in its batch: tokens, or the loss of its place.
#pragma once

#include "actors/protocol/actors.hpp"
#include "actors/protocol/message.hpp"
#include "actors/protocol/values.hpp"

#include <cstdint>
#include <string>

namespace lamella::actors {

/// A committed token of a sequence.
struct token {
  sequence_id sequence{};
  uint32_t index = 0; ///< of the generated token
  sampled_token value;
  finish reason = finish::none;
  uint64_t epoch = 0; ///< of the batch; what one of an earlier epoch says is computed again
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
  uint64_t epoch = 0; ///< likewise; a message of an earlier epoch is ignored
};

/// The batch aborted this sequence.
struct sequence_failed {
  sequence_id sequence{};
  std::string reason;
  uint64_t epoch = 0;   ///< as above
  bool refused = false; ///< the response format that the request asks for is at fault
};

} // namespace lamella::actors

// clang-format off
#define LAMELLA_TOKENS_MESSAGES(x) \
  x(token) x(first_token) x(preempted) x(sequence_failed)
// clang-format on
LAMELLA_TOKENS_MESSAGES(LAMELLA_MADE_ELSEWHERE)
