/// The tokens of a vocabulary by their bytes.
#pragma once

#include "model/grammar/grammar.hpp"
#include "model/tokenizer/tokenizer.hpp"

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

namespace lamella::model {

/// All tokens that an answer's text can be made of, as a tree of their bytes: those that begin
/// alike share what they share. Special tokens are not in it, but for those asked for. Immutable.
/// Some 12 bytes per node, of which a vocabulary has about two per token.
class token_trie {
public:
  explicit token_trie(std::shared_ptr<const tokenizer> text,
                      std::span<const token_id> specials = {});

  /// In preorder: behind a node come those below it, up to `behind`.
  struct node {
    uint32_t behind;      ///< index of the first node that is not below this one
    uint32_t first_token; ///< its tokens are those up to the next node's first
    uint16_t depth;       ///< bytes from the root, which is none of the nodes: 1 and more
    uint8_t byte;
  };
  struct tree {
    std::vector<node> nodes;      ///< with one more at the end, which has no byte
    std::vector<token_id> tokens; ///< in the order of the nodes
  };
  const tree& all() const { return all_; }
  /// Without the plain tokens: those of whole characters that stand for themselves in JSON strings,
  /// which are no quotation marks, backslashes and control characters.
  const tree& others() const { return others_; }
  /// Is the token at this index of all().tokens a plain one?
  bool is_plain(size_t index) const { return plain_[index]; }
  /// The node of others() with the bytes of a node of all(); `absent` where there is none.
  uint32_t in_others(size_t index) const { return in_others_[index]; }
  static constexpr uint32_t absent = ~uint32_t{0};
  uint32_t depth() const { return depth_; }

  std::string_view bytes_of(token_id token) const { return text_->token_bytes(token); }

  /// Bytes that are tokens of their own: what can be spelt of them can be spelt to its end.
  const byte_set& single_bytes() const { return single_bytes_; }

private:
  tree tree_of(std::vector<token_id> tokens) const;
  void match_others();

  std::shared_ptr<const tokenizer> text_;
  tree all_, others_;
  std::vector<bool> plain_;         ///< by index of a token
  std::vector<uint32_t> in_others_; ///< by node
  uint32_t depth_ = 0;
  byte_set single_bytes_;
};

} // namespace lamella::model
