/// Tokens as a tree of their bytes.
#pragma once

#include "model/token.hpp"

#include <cstdint>
#include <vector>

namespace lamella::model {

/// Tokens that begin alike share what they share.
struct token_tree {
  /// In preorder: behind a node come those below it, up to `behind`.
  struct node {
    uint32_t behind;      ///< index of the first node that is not below this one
    uint32_t first_token; ///< its tokens are those up to the next node's first
    uint16_t depth;       ///< bytes from the root, which is none of the nodes: 1 and more
    uint8_t byte;
    uint8_t longest; ///< in the tree of plain tokens: most characters of those here and below
  };
  std::vector<node> nodes;       ///< with one more at the end, which has no byte
  std::vector<token_id> tokens;  ///< in the order of the nodes
  std::vector<uint32_t> node_of; ///< by index of a token
  uint32_t depth = 0;            ///< most bytes
};

} // namespace lamella::model
