/// Finds the tokens that a grammar allows next.
#pragma once

#include "model/grammar/grammar_states.hpp"
#include "model/grammar/plain_reach.hpp"
#include "model/grammar/token_trie.hpp"
#include "model/token_mask.hpp"

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace lamella::model {

/// One walk through the trees of a vocabulary, past what is below a byte that is not allowed. Where
/// any plain text may come next, tokens are allowed by their length alone, and only those are gone
/// through that are longer or no plain text. Where many may come, but not all, and the grammar
/// tells few classes of characters apart, plain tokens are gone through by these classes.
class mask_walk {
public:
  using state_id = grammar_states::state_id;

  /// The mask is of `size` tokens.
  mask_walk(const token_trie& vocabulary, grammar_states& states, plain_reach& plain, uint32_t size)
      : vocabulary_{vocabulary}, states_{states}, plain_{plain}, size_{size} {}

  /// All tokens that may come at a near state. False: the states that tokens lead to have more than
  /// `work_max` places together, and nothing is known.
  bool run(state_id from, size_t work_max);
  /// Tokens of one byte alone.
  void run_single_bytes(state_id from);

  token_mask take() { return std::move(mask_); }

private:
  void begin();
  void allow(token_id t) {
    if (t < size_) mask_.words[t / 32] |= 1u << t % 32;
  }
  /// Those from `first` up to `end`. Nodes have one or none, in no order that could be foreseen.
  void allow(const std::vector<token_id>& tokens, uint32_t first, uint32_t end) {
    if (first == tokens.size()) return;
    if (const auto t = tokens[first]; t < size_)
      mask_.words[t / 32] |= uint32_t{first != end} << t % 32;
    for (auto i = first + 1; i < end; ++i) allow(tokens[i]);
  }
  bool count(state_id x) { return (x < seen_.size() && seen_[x] != 0) || count_new(x); }
  bool count_new(state_id x);
  bool go_others(state_id from);
  bool go_plain(state_id from);
  static constexpr size_t no_limit = ~size_t{0};
  struct limits {
    size_t nodes = no_limit, states = no_limit;
  };
  enum class gone : uint8_t { all, too_much, dear };
  gone go_bytes(state_id from, const plain_reach::result& reach, limits most);
  bool go_classes(state_id from, const class_tree& tree);
  void allow_classes(const std::vector<state_id>& at, const class_tree& tree);
  void allow_plain_up_to(uint32_t characters);
  bool allow_below(uint32_t i, state_id at, uint32_t characters);

  const token_trie& vocabulary_;
  grammar_states& states_;
  plain_reach& plain_;
  const uint32_t size_;
  token_mask mask_;
  std::vector<uint8_t> seen_; ///< by state
  size_t work_ = 0, work_max_ = 0;
};

} // namespace lamella::model
