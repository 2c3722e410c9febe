/// The tokens of a vocabulary by their bytes.
#pragma once

#include "model/grammar/character_tree.hpp"
#include "model/grammar/class_tree.hpp"
#include "model/grammar/grammar.hpp"
#include "model/grammar/token_tree.hpp"
#include "model/tokenizer/tokenizer.hpp"

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

namespace lamella::model {

/// All tokens that an answer's text can be made of, as trees of their bytes: those that begin alike
/// share what they share. Special tokens are not in them, but for those asked for. Some
/// 12 bytes per node, of which a vocabulary has about two per token, and a bit per token for each
/// number of characters.
///
/// Plain tokens are of 1 to plain_characters_max whole characters that stand for themselves in JSON
/// strings: no quotation marks, backslashes and control characters. They are apart from the others,
/// because where any character may come, they are allowed or not by their length alone. They have
/// no more than character_tree::characters_max different characters; tokens with others are none.
class token_trie {
public:
  static constexpr uint32_t plain_characters_max = 32;

  explicit token_trie(std::shared_ptr<const tokenizer> text,
                      std::span<const token_id> specials = {});

  using tree = token_tree;
  const tree& plain() const { return plain_; }
  const tree& others() const { return others_; }
  /// Characters of the token at this index of plain().tokens.
  uint32_t characters(size_t index) const { return characters_[index]; }
  /// The plain tokens of at most so many characters, as the words of a token_mask.
  std::span<const uint32_t> plain_up_to(uint32_t characters) const {
    return plain_up_to_[characters];
  }
  uint32_t depth() const { return depth_; }
  /// The plain tokens by their characters, in the order of plain().tokens.
  const character_tree& by_characters() const { return by_characters_; }
  /// The plain tokens by classes of characters (class_trees). Safe to be called from several
  /// threads; all else does not change.
  class_trees::found by_classes(const character_classes& classes, size_t nodes) const {
    return class_trees_->of(by_characters_, plain_.tokens, classes, nodes);
  }

  std::string_view bytes_of(token_id token) const { return text_->token_bytes(token); }

  /// Bytes that are tokens of their own: what can be spelt of them can be spelt to its end.
  const byte_set& single_bytes() const { return single_bytes_; }

private:
  tree tree_of(std::vector<token_id> tokens) const;
  void count_characters();

  std::shared_ptr<const tokenizer> text_;
  tree plain_, others_;
  character_tree by_characters_;
  std::vector<uint8_t> characters_; ///< by index of a plain token
  std::array<std::vector<uint32_t>, plain_characters_max + 1> plain_up_to_;
  const std::unique_ptr<class_trees> class_trees_ = std::make_unique<class_trees>();
  uint32_t depth_ = 0;
  byte_set single_bytes_;
};

} // namespace lamella::model
