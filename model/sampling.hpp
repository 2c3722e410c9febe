/// Sampling parameters of a sequence, and the resulting changes of its next row of logits.
#pragma once

#include "model/token.hpp"

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace lamella::model {

class output_constraint;
struct token_mask;

/// Changes a logit: l = (l > 0 ? l / scale : l * scale) + add. Penalties, biases, forbidden tokens.
struct logit_edit {
  token_id token = 0;
  float scale = 1; ///< > 0; 1 leaves it
  float add = 0;   ///< may be -infinity
};

/// Changes of a row of logits before a token is sampled from it.
struct logit_changes {
  std::vector<logit_edit> edits;
  std::shared_ptr<const token_mask> mask; ///< null: every token may be sampled
};

/// The sampling parameters of one sequence; they never change while it lives.
struct sampling {
  uint64_t seed = 0;
  uint32_t choice = 0;          ///< k: which of the request's choices
  float temperature = 1;        ///< 0: greedy
  uint32_t top_k = 0;           ///< 0: off
  float top_p = 1;              ///< 1: off
  float min_p = 0;              ///< 0: off
  float presence_penalty = 0;   ///< once for each token generated before
  float frequency_penalty = 0;  ///< for each time it was generated
  float repetition_penalty = 1; ///< for tokens of the prompt or generated before
  uint32_t logprobs = 0;        ///< 0: none; else 1 + alternatives
  uint32_t min_tokens = 0;      ///< `end_tokens` are forbidden before
  std::vector<token_id> end_tokens;
  std::vector<std::pair<token_id, float>> bias;
  /// What the output is held to; null: nothing. Shared, and never leaves its process: devices get
  /// masks.
  std::shared_ptr<output_constraint> constraint;

  /// Whether the logit changes of a token depend on the previous tokens; then launches cannot run
  /// ahead.
  bool needs_history() const {
    return presence_penalty != 0 || frequency_penalty != 0 || repetition_penalty != 1
           || min_tokens > 0 || constraint != nullptr;
  }
};

/// What penalties need to know of the tokens so far. Derived: rebuilt from prompt and output.
class token_history {
public:
  void prompt(std::span<const token_id> tokens) {
    for (auto t : tokens) counts_.try_emplace(t, 0);
  }
  void generated(token_id token) {
    ++counts_[token];
    ++generated_;
  }

  /// The edits for the next token.
  std::vector<logit_edit> edits(const sampling& wanted) const;

private:
  std::map<token_id, uint32_t> counts_; ///< how often generated; 0: in the prompt only
  uint32_t generated_ = 0;
};

} // namespace lamella::model
