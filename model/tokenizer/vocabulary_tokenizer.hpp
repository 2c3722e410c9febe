/// What tokenisers have in common that are made from a list of tokens.
#pragma once

#include "model/tokenizer/marker_trie.hpp"
#include "model/tokenizer/tokenizer.hpp"

#include <functional>
#include <string>
#include <unordered_map>
#include <vector>

namespace lamella::model {

/// Knows the tokens by id and by text, and finds those in a text that are taken whole: control
/// tokens, where the text may name them, and user-defined ones. What lies between them is for the
/// kind of tokeniser to cut.
class vocabulary_tokenizer : public tokenizer {
public:
  std::vector<token_id> encode(std::span<const text_segment> segments) const final;

  std::string_view token_bytes(token_id token) const final {
    return token < entries_.size() ? std::string_view(entries_[token].bytes) : std::string_view{};
  }
  bool is_special(token_id token) const final {
    return token < entries_.size() && entries_[token].special;
  }
  bool is_end(token_id token) const final {
    return token < entries_.size() && entries_[token].ends;
  }
  std::optional<token_id> special_token(std::string_view text) const final {
    return markers_.control(text);
  }
  uint64_t kept_bytes(std::string_view text) const override;
  uint64_t longest_token() const final { return longest_; }
  uint32_t vocabulary() const final { return static_cast<uint32_t>(entries_.size()); }
  std::optional<token_id> bos() const final { return bos_; }
  std::optional<token_id> eos() const final { return eos_; }
  bool adds_bos() const final { return adds_bos_; }
  bool puts_space_after(std::optional<token_id>) const override { return false; }

protected:
  /// `bytes_of(id)` is what a token stands for in texts. `adds_bos`: where the source does not say.
  /// Throws file_error if there are no tokens.
  vocabulary_tokenizer(const tokenizer_source& source, bool adds_bos,
                       const std::function<std::string(token_id)>& bytes_of);

  /// Appends the tokens of text that has no marker: of all that is between two of them, or between
  /// one and an end of the whole text. Never empty.
  virtual void encode_plain(std::string_view text, std::vector<token_id>& out) const = 0;

  /// The normal token of these bytes. Control tokens, bytes and others are none: nothing that is
  /// merged ever becomes one.
  std::optional<token_id> plain_token(std::string_view bytes) const {
    const auto found = plain_.find(bytes);
    return found == plain_.end() ? std::nullopt : std::optional(found->second);
  }
  const std::unordered_map<std::string_view, token_id>& plain_tokens() const { return plain_; }

  /// Is it taken whole where it is found in a text?
  bool is_marker(token_id token) const { return token < entries_.size() && entries_[token].marker; }

private:
  struct entry {
    std::string bytes;
    bool marker = false;
    bool special = false;
    bool ends = false;
    bool takes_space = false; ///< white space that follows it
  };

  std::optional<token_id> bos_, eos_;
  bool adds_bos_;
  std::vector<entry> entries_;
  std::unordered_map<std::string_view, token_id> plain_; ///< into the entries
  marker_trie markers_;
  uint64_t longest_ = 1;     ///< bytes of a token
  bool takes_space_ = false; ///< some marker does
};

} // namespace lamella::model
