/// Byte pair merging.
#pragma once

#include "model/token.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace lamella::model {

/// The merge rules of a byte-level vocabulary: two neighbouring tokens become one, the rule learned
/// first wins, of equal rules the leftmost place.
///
/// A word starts as one token per byte. The applicable rules wait in a heap; each merge removes one
/// token and adds at most two rules, so a word of n bytes costs O(n log n) - where looking for the
/// best rule anew each time would cost O(n²), which a user could choose to make us pay.
class bpe {
public:
  /// Words longer than this are cut into parts of at most this many bytes (at the border of a code
  /// point where there is one), before merging. Part of the definition of the tokeniser.
  static constexpr size_t word_bytes_max = 16 * 1024;

  /// `byte_tokens[b]` is the token of byte b; bytes without one are left out of every word.
  explicit bpe(const std::array<std::optional<token_id>, 256>& byte_tokens, size_t rules);

  /// Adds the next rule. The first of several rules for the same pair counts.
  void add_rule(token_id left, token_id right, token_id merged);

  /// Room for merging, kept between words.
  class scratch {
    friend class bpe;
    struct symbol {
      token_id token;
      uint32_t previous, next;
    };
    struct candidate {
      uint32_t rank, at; ///< the left symbol's index
      token_id left, right, merged;
    };
    std::vector<symbol> symbols_;
    std::vector<candidate> heap_;
  };

  /// Appends the tokens of `word`. Returns the number of rules looked up, a measure of the work.
  size_t merge(std::string_view word, scratch& room, std::vector<token_id>& out) const;

private:
  struct rule {
    uint64_t pair = empty;
    uint32_t rank = 0;
    token_id merged = 0;
  };
  static constexpr uint64_t empty = ~uint64_t{0};

  size_t place_of(uint64_t pair) const;
  size_t merge_part(std::string_view part, scratch& room, std::vector<token_id>& out) const;
  void consider(scratch& room, uint32_t left) const;

  std::array<std::optional<token_id>, 256> byte_tokens_;
  std::vector<rule> rules_; ///< open addressing, a power of two, at most half full
  uint32_t count_ = 0;
};

} // namespace lamella::model
