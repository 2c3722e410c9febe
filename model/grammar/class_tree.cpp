#include "model/grammar/class_tree.hpp"

#include <algorithm>

namespace lamella::model {

namespace {

constexpr size_t below_max = 1 << 19; ///< children of all nodes, whether they are there or not

} // namespace

uint32_t class_tree::below(uint32_t above, uint16_t of_class) {
  const auto at = above * width_ + of_class;
  const auto known = growth_.below[at];
  if (known != none) return known;
  const auto made = static_cast<uint32_t>(nodes_.size());
  growth_.below[at] = made;
  growth_.below.resize(growth_.below.size() + width_, none);
  nodes_.push_back({above, of_class});
  return made;
}

void class_tree::grow(const character_tree& plain, std::span<const token_id> tokens, size_t nodes) {
  if (is_ != state::growing) return;
  auto& x = growth_;
  const auto all = plain.nodes.size() - 1;
  const auto end = x.here.size() + std::min(nodes, all - x.here.size());
  for (auto i = x.here.size(); i < end; ++i) {
    const auto& one = plain.nodes[i];
    const auto here = below(x.at[one.depth - 1u], characters_.of[one.character]);
    x.at[one.depth] = here;
    x.here.push_back(static_cast<uint16_t>(here));
    if (nodes_.size() > nodes_max || x.below.size() > below_max) {
      is_ = state::too_large;
      nodes_ = {};
      growth_ = {};
      return;
    }
  }
  if (end == all) finish(plain, tokens);
}

void class_tree::finish(const character_tree& plain, std::span<const token_id> tokens) {
  const auto& here = growth_.here;
  const auto& nodes = plain.nodes;
  first_token_.resize(nodes_.size() + 1);
  for (size_t i = 0; i < here.size(); ++i)
    first_token_[here[i] + 1u] += nodes[i + 1].first_token - nodes[i].first_token;
  for (size_t i = 1; i < first_token_.size(); ++i) first_token_[i] += first_token_[i - 1];
  tokens_.resize(tokens.size());
  auto at = first_token_;
  for (size_t i = 0; i < here.size(); ++i)
    for (auto t = nodes[i].first_token; t < nodes[i + 1].first_token; ++t)
      tokens_[at[here[i]]++] = tokens[t];
  growth_ = {};
  is_ = state::ready;
}

class_trees::found class_trees::of(const character_tree& plain, std::span<const token_id> tokens,
                                   const character_classes& classes, size_t nodes) {
  const std::lock_guard guard{lock_};
  const auto known =
      std::find_if(known_.begin(), known_.end(), [&](const auto& x) { return x.first == classes; });
  if (known != known_.end())
    known_.splice(known_.begin(), known_, known);
  else
    known_.emplace_front(classes, std::make_shared<class_tree>(plain, classes));
  if (known_.size() > kept_max) known_.pop_back();
  auto& tree = known_.front().second;
  tree->grow(plain, tokens, nodes);
  return {tree, tree->is() == class_tree::state::ready};
}

} // namespace lamella::model
