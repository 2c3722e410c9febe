/// Plain tokens of a vocabulary by the classes of their characters.
#pragma once

#include "model/grammar/character_classes.hpp"
#include "model/grammar/character_tree.hpp"
#include "model/grammar/token_tree.hpp"

#include <array>
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
    uint32_t above = 0;    ///< a node that comes before this one
    uint16_t of_class = 0; ///< of its character, by characters()
  };

  class_tree(const character_tree& plain, const character_classes& classes)
      : characters_{plain, classes}, width_{static_cast<uint32_t>(characters_.one.size())} {
    growth_.below.assign(width_, none);
    growth_.here.reserve(plain.nodes.size());
  }

  /// Goes through so many more nodes of `plain`, the same one in all calls; some milliseconds for
  /// all of them at 150,000 tokens. `tokens`: those of `plain`.
  void grow(const character_tree& plain, std::span<const token_id> tokens, size_t nodes);
  enum class state : uint8_t { growing, ready, too_large };
  state is() const { return is_; }

  /// The classes, of the characters that tokens are made of. Known from the start.
  const classed_characters& characters() const { return characters_; }

  /// Those above come first; the first one is the root, which has no character.
  const std::vector<node>& nodes() const { return nodes_; }
  /// The tokens whose last character is this node.
  std::span<const token_id> tokens_at(size_t x) const {
    return {tokens_.data() + first_token_[x], tokens_.data() + first_token_[x + 1]};
  }

private:
  static constexpr auto none = ~uint32_t{0};
  struct growth {
    std::vector<uint32_t> below;  ///< by node and class
    std::array<uint32_t, 256> at; ///< by characters from the root
    std::vector<uint16_t> here;   ///< by node of the tokens' tree
  };
  void finish(const character_tree& plain, std::span<const token_id> tokens);
  uint32_t below(uint32_t above, uint16_t of_class);

  const classed_characters characters_;
  const uint32_t width_; ///< classes
  state is_ = state::growing;
  growth growth_{}; ///< empty where it does not grow any more
  std::vector<node> nodes_{1};
  std::vector<uint32_t> first_token_; ///< by node, and one more at the end: of tokens_
  std::vector<token_id> tokens_;      ///< by their nodes
};

/// The class trees of a vocabulary that were asked for last. Safe to be called from several
/// threads.
class class_trees {
public:
  static constexpr size_t kept_max = 16; ///< some MB each where they are large, most 0.6 MB

  struct found {
    std::shared_ptr<const class_tree> tree;
    bool is_ready = false; ///< else only its characters() may be asked for
  };
  /// A tree that is not ready grows by so many nodes of the tokens' tree each time it is asked for,
  /// unless it would be too large.
  found of(const character_tree& plain, std::span<const token_id> tokens,
           const character_classes& classes, size_t nodes);

private:
  std::mutex lock_;
  /// The one that was asked for last is the first.
  std::list<std::pair<character_classes, std::shared_ptr<class_tree>>> known_;
};

} // namespace lamella::model
