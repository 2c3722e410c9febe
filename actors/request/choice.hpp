/// The text of one choice while its tokens arrive: detokenised, split into text and tool calls,
/// searched for stop strings, released.
#pragma once

#include "actors/protocol/values.hpp"
#include "model/tokenizer/detokenizer.hpp"
#include "net/api/api_request.hpp"
#include "net/api/api_response.hpp"
#include "net/api/reasoning_reader.hpp"
#include "net/api/stop_matcher.hpp"
#include "net/api/tool_call_reader.hpp"

#include <optional>
#include <string>
#include <vector>

namespace lamella::actors {

/// Unsent output of a choice.
struct choice_piece : net::answer_piece {
  std::string reasoning;                     ///< before the text
  std::vector<net::part_end> ends;           ///< where reasoning follows text: those of parts
  std::vector<net::token_logprobs> logprobs; ///< of the tokens behind text and calls
};

/// A pure function of the tokens pushed so far: it can be rebuilt from them at any time.
class choice {
public:
  /// `text` must outlive the choice. `before`: the last token of the text that the choice
  /// continues; nothing where it starts a new text. `calls`: the tool-call dialect; null: no tools.
  /// With tools, stop strings and stop tokens apply to the text only. Stop strings that are
  /// complete within the first `min_tokens` tokens end nothing. `unfinished`: the bytes of a
  /// character that the text before ends within; the choice starts with that character.
  /// `reasoning`: of a model that reasons; null: all is text. Stop strings and calls are looked for
  /// behind it only.
  choice(const model::tokenizer& text, const net::generation_params& params,
         std::optional<model::token_id> before = {}, const model::tool_dialect* calls = nullptr,
         std::string unfinished = {}, const model::answer_reasoning* reasoning = nullptr);

  /// The next token; `reason`: whether the batch finished the choice with it. Ignored once
  /// finished.
  void push(const sampled_token& drawn, finish reason);

  /// Finishes the choice without a token (max_tokens 0).
  void close(finish reason);

  /// Output that can be sent now; empty unless has_text().
  choice_piece take();

  bool over() const { return reason_ != finish::none; }
  finish reason() const { return reason_; }
  const net::stop_reason& stopped_by() const { return stopped_by_; }

  /// All sampled tokens, an end token included.
  const std::vector<token_id>& tokens() const { return tokens_; }

  /// Number of started tool calls.
  uint32_t calls() const { return calls_ ? calls_->calls() : 0; }

  /// Whether output is available: text, calls, or at the end the log probabilities of tokens
  /// without text.
  bool has_text() const {
    return !pending_.empty() || !pending_.reasoning.empty()
           || (over() && !pending_.logprobs.empty());
  }
  /// Number of tokens that are reasoning.
  uint64_t reasoning_tokens() const { return reasoning_tokens_; }
  double sum_logprob() const { return sum_logprob_; }

private:
  bool stops_at(token_id token) const;
  void hear(const std::string& text);
  void answer(const std::string& text);
  void think(std::string_view reasoning);
  void hear(net::answer_piece piece);
  void say(const std::string& text);

  const model::tokenizer* text_;
  std::optional<model::token_id> before_; ///< the next token
  std::vector<std::string> stops_;
  std::vector<uint32_t> stop_ids_; ///< that the batch does not end at
  uint32_t min_tokens_;
  bool wants_logprobs_;
  bool skips_specials_; ///< tokens of control are no part of the text
  model::detokenizer detokenizer_;
  net::stop_matcher matcher_;
  std::optional<net::reasoning_reader> reasoning_;
  bool tells_reasoning_;
  uint64_t reasoning_tokens_ = 0;
  std::optional<net::tool_call_reader> calls_;
  std::vector<token_id> tokens_;
  choice_piece pending_;
  finish reason_ = finish::none;
  net::stop_reason stopped_by_;
  double sum_logprob_ = 0;
};

} // namespace lamella::actors
