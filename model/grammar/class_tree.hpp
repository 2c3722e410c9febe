/// Plain tokens of a vocabulary by the classes of their characters.
#pragma once

#include "model/grammar/character_classes.hpp"
#include "model/grammar/token_tree.hpp"

#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

namespace lamella::model {

/// A tree of classes of characters: tokens whose characters are of the same classes, in their
/// order, are at one node. Where a grammar tells no more apart, what is allowed of 75,000 tokens is
/// known from some hundred nodes.
class class_tree {
public:
  /// More nodes are not worth it, nor are as many where there are many classes.
  static constexpr size_t nodes_max = 49'152;

  struct node {
    uint32_t above = 0;     ///< a node that comes before this one
    char32_t character = 0; ///< one of its class
  };

  /// `plain`: tokens of whole characters, the same ones in all calls.
  class_tree(const token_tree& plain, const character_classes& classes);

  /// Goes through so many more nodes of the tree of plain tokens; some milliseconds for all of
  /// them at 150,000 tokens.
  void grow(const token_tree& plain, size_t nodes);
  enum class state : uint8_t { growing, ready, too_large };
  state is() const { return is_; }

  /// Those above come first; the first one is the root, which has no character.
  const std::vector<node>& nodes() const { return nodes_; }
  /// By index of a token: the node of its last character.
  const std::vector<uint16_t>& node_of() const { return node_of_; }
  /// The tokens whose last character is this node.
  std::span<const token_id> tokens_at(size_t x) const {
    return {tokens_.data() + first_token_[x], tokens_.data() + first_token_[x + 1]};
  }

private:
  /// What is known of a node of the tokens' tree.
  struct place {
    uint32_t at = 0;    ///< behind its whole characters
    char32_t begun = 0; ///< bits of a character that is begun
    uint32_t more = 0;  ///< bytes that it lacks
  };
  struct growth {
    std::vector<uint8_t> pages;  ///< of 64 characters: one more than their class; 0: several
    std::vector<uint32_t> below; ///< by node and class
    std::vector<place> places;   ///< by bytes from the root
    std::vector<uint16_t> here;  ///< by node of the tokens' tree
    size_t next = 0;             ///< of these
  };
  void finish(const token_tree& plain);
  uint32_t class_of(char32_t c) const;
  uint32_t below(uint32_t above, char32_t c);

  const character_classes classes_;
  const uint32_t width_; ///< classes
  state is_ = state::growing;
  growth growth_; ///< empty where it does not grow any more
  std::vector<node> nodes_{1};
  std::vector<uint16_t> node_of_;
  std::vector<uint32_t> first_token_; ///< by node, and one more at the end: of tokens_
  std::vector<token_id> tokens_;      ///< by their nodes
};

/// The class trees of a vocabulary that were asked for last. Safe to be called from several
/// threads.
class class_trees {
public:
  static constexpr size_t kept_max = 16; ///< some MB each where they are large, most 0.2 MB

  /// Null where it is too large, or not ready: then it is, as far as `work` nodes of the tokens'
  /// tree go, when it is asked for again.
  std::shared_ptr<const class_tree> of(const token_tree& plain, const character_classes& classes,
                                       size_t work);

private:
  std::mutex lock_;
  /// The one that was asked for last is the first.
  std::list<std::pair<character_classes, std::shared_ptr<class_tree>>> known_;
};

} // namespace lamella::model
