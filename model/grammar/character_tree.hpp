/// Plain tokens of a vocabulary as a tree of their characters.
#pragma once

#include "model/grammar/character_classes.hpp"
#include "model/grammar/runnable_grammar.hpp"
#include "model/grammar/token_tree.hpp"

#include <cstdint>
#include <vector>

namespace lamella::model {

/// What token_tree is by bytes, of tokens of whole characters. A node is 12 bytes; there are fewer
/// of them than of bytes, and all that a grammar says of a character is known by its number.
struct character_tree {
  /// Characters are numbered, so there are no more of them in all tokens.
  static constexpr size_t characters_max = 1 << 16;

  /// In preorder, as token_tree::node. Tokens are those of the tree it was made of, in their order.
  struct node {
    uint32_t behind;      ///< index of the first node that is not below this one
    uint32_t first_token; ///< its tokens are those up to the next node's first
    uint16_t character;   ///< its number
    uint8_t depth;        ///< characters from the root, which is none of the nodes: 1 and more
    uint8_t longest;      ///< most characters of the tokens here and below
  };
  std::vector<node> nodes;          ///< with one more at the end, which has no character
  std::vector<char32_t> characters; ///< by number, ascending

  character_tree() = default;
  /// `plain`: tokens of at most 255 whole characters, and of at most characters_max different ones.
  explicit character_tree(const token_tree& plain);
};

/// The characters of a vocabulary by classes: wherever one of a class may come next, each of it
/// may, and leads to the same.
struct classed_characters {
  /// By classes that are noted in a grammar; those of which no token is made are left out.
  classed_characters(const character_tree& tree, const character_classes& classes);
  /// By the classes of their bytes. Some 0.1 ms at 150,000 tokens.
  classed_characters(const character_tree& tree, const byte_classes& classes);

  std::vector<uint16_t> of;  ///< by number of a character
  std::vector<char32_t> one; ///< by class: a character of it
};

} // namespace lamella::model
