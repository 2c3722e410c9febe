/// Tokens to text while they arrive.
#pragma once

#include "model/tokenizer/tokenizer.hpp"

#include <optional>
#include <span>
#include <string>
#include <utility>

namespace lamella::model {

/// Turns a stream of tokens into valid UTF-8 text, released at the borders of code points.
///
/// The text released for a list of tokens is a function of the list: it may be rebuilt by pushing
/// the same tokens again. Bytes that no UTF-8 sequence contains become U+FFFD, one for each longest
/// beginning of a sequence, as browsers do it.
class detokenizer {
public:
  enum class specials : uint8_t { skipped, shown };

  /// `tokens` must outlive the detokeniser. Where the text goes on after others, `before` is the
  /// last of these; else it begins. `held`: their unfinished_end(), with which it begins.
  explicit detokenizer(const tokenizer& tokens, specials policy = specials::skipped,
                       std::optional<token_id> before = {}, std::string held = {})
      : tokens_(&tokens), policy_(policy), before_(before), held_(std::move(held)) {}

  /// The text that `token` completes: nothing while a code point is unfinished.
  std::string push(token_id token);

  /// Ends the text: U+FFFD if a code point is unfinished, else nothing. Then ready for a new text.
  std::string finish();

  /// Bytes held back, at most 3.
  size_t held() const { return held_.size(); }

private:
  const tokenizer* tokens_;
  specials policy_;
  std::optional<token_id> before_;
  std::string held_;
};

/// The bytes at the end of the text of these tokens that begin a code point and do not finish it:
/// at most 3.
std::string unfinished_end(const tokenizer& tokens, std::span<const token_id> text);

} // namespace lamella::model
