/// Log probabilities of tokens in the words of the API: of tokens that are generated, and of those
/// of a prompt.
#pragma once

#include "actors/protocol/values.hpp"
#include "model/tokenizer/tokenizer.hpp"
#include "net/api/api_response.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lamella::actors {

/// What a token adds to the text that ends with `before`, and how likely it was.
net::token_logprobs describe(const model::tokenizer& text, std::optional<token_id> before,
                             const sampled_token& drawn);

/// The tokens of a prompt, and how likely each one is after those before it.
struct prompt_scores {
  token_id first = 0;
  std::vector<sampled_token> rest; ///< the others
};

using prompt_scores_ptr = std::shared_ptr<const prompt_scores>;

/// A part of an echoed prompt.
struct echo_piece {
  std::string text;
  std::vector<net::token_logprobs> logprobs; ///< of its tokens
};

/// Says the text of a prompt together with its tokens' log probabilities, piece by piece. Tokens
/// that are no part of the text, as one that begins it, take none of its code points.
class prompt_echo {
public:
  /// `tokens` must outlive this. `shown`: the text. `unfinished`: the bytes of a character that the
  /// prompt ends within, behind `shown`.
  prompt_echo(const model::tokenizer& tokens, prompt_scores_ptr scores, std::string shown,
              const std::string& unfinished, uint32_t alternatives);

  size_t tokens() const { return scores_->rest.size() + 1; }
  uint32_t alternatives() const { return alternatives_; }
  bool done() const { return next_ > scores_->rest.size(); }

  /// The next `least` tokens, and those that complete the last one's character.
  echo_piece next(size_t least);

private:
  uint32_t count_to(size_t end);
  uint32_t take(std::string_view bytes, token_id token);

  const model::tokenizer* tokens_;
  prompt_scores_ptr scores_;
  std::string text_;   ///< with the unfinished character
  size_t shown_ = 0;   ///< bytes of it that are the text
  size_t at_ = 0;      ///< bytes that the tokens so far stand for
  size_t counted_ = 0; ///< bytes of the code points that begin within them
  size_t next_ = 0;    ///< token
  uint32_t alternatives_;
};

/// The log probabilities of a prompt as vLLM has them.
net::prompt_candidates candidates_of(const model::tokenizer& tokens, const prompt_scores& scores,
                                     uint32_t alternatives);

} // namespace lamella::actors
