/// Prompts: from a request to PREFILL WORKER.
#pragma once

#include "actors/protocol/actors.hpp"
#include "actors/protocol/message.hpp"
#include "actors/protocol/values.hpp"

#include <cstdint>
#include <vector>

namespace lamella::actors {

/// Asks for KV and first tokens of a prompt, one for each choice.
struct prefill {
  sequence_id first{};
  std::vector<token_id> tokens;
  uint32_t member = 0;
  std::vector<slot_run> runs;         ///< of the first choice; cover the tokens
  std::vector<sampling> samplings;    ///< per choice
  std::vector<uint32_t> draws;        ///< per choice: index of the token to sample
  std::vector<logit_changes> changes; ///< per choice: applied to the logits before sampling
  decode_client_actor client{};       ///< hears of its start and of early first tokens; may be null
  uint32_t cached = 0;                ///< tokens whose KV is already in the runs
  bool rebuild = false;               ///< recomputes lost KV of tokens that were committed before
  uint32_t slack_ms = ~0u;            ///< rebuild: time left to the request's deadline
  uint32_t scored = 0; ///< log probabilities of its tokens: 0: none; else 1 + alternatives
};

struct prefilled {
  std::vector<sampled_token> tokens;   ///< per choice
  uint64_t waited_us = 0;              ///< in the queue before its first row was computed
  std::vector<sampled_token> scores{}; ///< of all tokens of a scored prompt but its first
};

/// Tokens of started prompts that a prefill worker has still to compute (S-M06). Told after each
/// iteration; between two the scheduler knows what it has added itself.
struct prefill_load {
  stream_id stream{};
  uint64_t tokens = 0;
};

/// Drops a prompt; its `prefill` is answered with ec::cancelled once no launch uses its slots.
struct prefill_cancel {
  sequence_id first{};
};

} // namespace lamella::actors

// clang-format off
#define LAMELLA_PREFILLS_MESSAGES(x) \
  x(prefill) x(prefilled) x(prefill_load) x(prefill_cancel)
// clang-format on
LAMELLA_PREFILLS_MESSAGES(LAMELLA_MADE_ELSEWHERE)
