/// Finds the tokens that a grammar allows next.
#pragma once

#include "model/grammar/character_steps.hpp"
#include "model/grammar/character_tree.hpp"
#include "model/grammar/grammar_states.hpp"
#include "model/grammar/plain_reach.hpp"
#include "model/grammar/token_trie.hpp"
#include "model/token_mask.hpp"

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace lamella::model {

/// What walks through the same states share.
struct walk_knowledge {
  explicit walk_knowledge(grammar_states& states)
      : plain{states, token_trie::plain_characters_max} {}

  plain_reach plain;
  std::optional<classed_characters> by_bytes; ///< made by the first walk that needs it
};

/// One walk through the trees of a vocabulary, past what is below a byte that is not allowed. Where
/// any plain text may come next, tokens are allowed by their length alone, and only those are gone
/// through that are longer or no plain text. Where many may come, but not all, plain tokens are
/// gone through by the classes of their characters: by those that the grammar notes, of which a
/// tree grows by a part of it for each mask that wants it, else by those of their bytes.
class mask_walk {
public:
  using state_id = grammar_states::state_id;

  /// The mask is of `size` tokens.
  mask_walk(const token_trie& vocabulary, grammar_states& states, walk_knowledge& known,
            uint32_t size)
      : vocabulary_{vocabulary}, states_{states}, known_{known}, size_{size} {}

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
    if (const auto t = tokens.data()[first]; t < size_)
      mask_.words.data()[t / 32] |= uint32_t{first != end} << t % 32;
    for (auto i = first + 1; i < end; ++i) allow(tokens[i]);
  }
  bool count(state_id x) { return (x < seen_.size() && seen_[x] != 0) || count_new(x); }
  bool count_new(state_id x);
  bool go_others(state_id from);
  bool go_plain(state_id from);
  enum class gone : uint8_t { all, too_much, dear };
  gone go_few_bytes(state_id from, uint32_t least);
  bool go_characters(state_id from, uint32_t least, const classed_characters& classes);
  bool go_classes(state_id from, const class_tree& tree);
  uint32_t make_step(character_steps& steps, uint32_t from, char32_t character);
  void allow_classes(const std::vector<uint32_t>& at, const class_tree& tree);
  void allow_plain_up_to(uint32_t characters);
  bool allow_below(uint32_t i, state_id at);

  const token_trie& vocabulary_;
  grammar_states& states_;
  walk_knowledge& known_;
  const uint32_t size_;
  token_mask mask_;
  std::vector<uint8_t> seen_; ///< by state
  size_t work_ = 0, work_max_ = 0;
};

} // namespace lamella::model
