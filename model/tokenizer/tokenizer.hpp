/// Text to tokens and back.
#pragma once

#include "model/token.hpp"
#include "model/tokenizer/tokenizer_source.hpp"

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lamella::model {

/// May the text name control tokens? Only templates and callers with the right to do so may; what a
/// user wrote never does, so that a user cannot end a turn by typing its marker.
enum class special : uint8_t { forbidden, allowed };

/// A piece of a rendered prompt: scaffolding of the chat template is trusted, message text is not.
struct text_segment {
  std::string text;
  bool trusted = false;
};

/// A tokeniser. Immutable; all functions may be called from several threads.
class tokenizer {
public:
  tokenizer() = default;
  tokenizer(const tokenizer&) = delete;
  tokenizer& operator=(const tokenizer&) = delete;
  virtual ~tokenizer() = default;

  /// Tokens of `text`, without a beginning-of-text token. With special::allowed the texts of
  /// control tokens become these tokens, the longest first; with special::forbidden never. Entries
  /// of kind user_defined are plain text and always taken whole. O(n log n) in the length of the
  /// text.
  std::vector<token_id> encode(std::string_view text, special policy) const;

  /// Tokens of the segments one after the other. A control token is produced only where every byte
  /// of its text is trusted; apart from that the result does not depend on where the borders of the
  /// segments are.
  virtual std::vector<token_id> encode(std::span<const text_segment> segments) const = 0;

  /// A lower bound of the tokens of a text of these segments, from its bytes, without tokenisation.
  uint64_t fewest_tokens(std::span<const text_segment> segments) const;
  uint64_t fewest_tokens(std::string_view text) const;

  /// The text that the tokens are the whole of: their bytes one after the other (control tokens as
  /// their text), without spaces that encode() put there. For all text whose bytes the vocabulary
  /// has, decode(encode(text)) == text (but for white space that markers take). The result is valid
  /// UTF-8 only if the tokens make it so; a detokenizer gives valid UTF-8 always.
  std::string decode(std::span<const token_id> tokens) const;

  /// What a token adds to the text of those before it, of which this is the last.
  std::string_view text_after(std::optional<token_id> before, token_id token) const;

  /// Bytes of one token; may be part of a code point only. Empty for an id beyond the vocabulary.
  virtual std::string_view token_bytes(token_id token) const = 0;
  /// Does encode() put a space before text that comes after this token, or begins? Then it is no
  /// part of the text that such tokens stand for.
  virtual bool puts_space_after(std::optional<token_id> before) const = 0;
  /// Is it a control or unknown token, which users do not see in answers?
  virtual bool is_special(token_id token) const = 0;
  /// Does it end an answer (end of text, of turn, of message)?
  virtual bool is_end(token_id token) const = 0;
  /// The id of the control token with exactly this text.
  virtual std::optional<token_id> special_token(std::string_view text) const = 0;
  /// Can this byte be encoded? Some vocabularies lack bytes that text hardly ever has (SmolLM2: a
  /// few control characters and bytes that UTF-8 does not use or only for private planes). Such
  /// bytes are left out by encode(), as the tokenisers do that these models were trained with.
  virtual bool has_byte(unsigned char byte) const = 0;

  /// Of the bytes of a text those that are part of a token for certain, wherever the text stands.
  virtual uint64_t kept_bytes(std::string_view text) const = 0;
  /// Bytes of the longest token, at least 1.
  virtual uint64_t longest_token() const = 0;

  /// Entries of the vocabulary; ids are below it.
  virtual uint32_t vocabulary() const = 0;
  virtual std::optional<token_id> bos() const = 0;
  virtual std::optional<token_id> eos() const = 0;
  /// Does a prompt begin with bos()? Where the chat template writes it already, do not add another.
  virtual bool adds_bos() const = 0;
};

} // namespace lamella::model
