#include "model/grammar/class_tree.hpp"

#include <algorithm>

namespace lamella::model {

namespace {

constexpr auto none = ~uint32_t{0};
constexpr size_t below_max = 1 << 19; ///< children of all nodes, whether they are there or not
constexpr char32_t page_size = 64, characters_end = 0x110000;

} // namespace

class_tree::class_tree(const token_tree& plain, const character_classes& classes)
    : classes_{classes}, width_{classes.count()} {
  auto& x = growth_;
  x.below.assign(width_, none);
  x.places.resize(plain.depth + 1);
  x.here.resize(plain.nodes.size());
  x.pages.resize(characters_end / page_size);
  for (size_t i = 0; i < classes.ranges.size(); ++i) {
    const auto& [first, of] = classes.ranges[i];
    const bool is_last = i + 1 == classes.ranges.size();
    const auto behind = is_last ? characters_end : classes.ranges[i + 1].first;
    for (auto page = (first + page_size - 1) / page_size; page < behind / page_size; ++page)
      x.pages[page] = static_cast<uint8_t>(of + 1);
  }
}

uint32_t class_tree::class_of(char32_t c) const {
  const auto page = growth_.pages[c / page_size];
  return page > 0 ? page - 1u : classes_.of(c);
}

uint32_t class_tree::below(uint32_t above, char32_t c) {
  const auto at = above * width_ + class_of(c);
  const auto known = growth_.below[at];
  if (known != none) return known;
  const auto made = static_cast<uint32_t>(nodes_.size());
  growth_.below[at] = made;
  growth_.below.resize(growth_.below.size() + width_, none);
  nodes_.push_back({above, c});
  return made;
}

void class_tree::grow(const token_tree& plain, size_t nodes) {
  if (is_ != state::growing) return;
  const auto& trie = plain.nodes;
  auto& x = growth_;
  const auto all = trie.size() - 1;
  const auto end = x.next + std::min(nodes, all - x.next);
  for (; x.next < end; ++x.next) {
    const auto byte = trie[x.next].byte;
    const auto depth = trie[x.next].depth;
    auto now = x.places[depth - 1u];
    if (byte < 0x80)
      now.begun = byte;
    else if (byte < 0xC0)
      now = {now.at, now.begun << 6 | (byte & 0x3F), now.more - 1};
    else
      now = byte < 0xE0   ? place{now.at, byte & 0x1Fu, 1}
            : byte < 0xF0 ? place{now.at, byte & 0x0Fu, 2}
                          : place{now.at, byte & 0x07u, 3};
    if (now.more == 0) now.at = below(now.at, now.begun);
    x.places[depth] = now;
    x.here[x.next] = static_cast<uint16_t>(now.at);
    if (nodes_.size() > nodes_max || x.below.size() > below_max) {
      is_ = state::too_large;
      nodes_ = {};
      growth_ = {};
      return;
    }
  }
  if (x.next == all) finish(plain);
}

void class_tree::finish(const token_tree& plain) {
  first_token_.resize(nodes_.size() + 1);
  node_of_.reserve(plain.tokens.size());
  for (const auto i : plain.node_of) {
    node_of_.push_back(growth_.here[i]);
    ++first_token_[node_of_.back() + 1u];
  }
  for (size_t i = 1; i < first_token_.size(); ++i) first_token_[i] += first_token_[i - 1];
  tokens_.resize(plain.tokens.size());
  auto at = first_token_;
  for (size_t i = 0; i < node_of_.size(); ++i) tokens_[at[node_of_[i]]++] = plain.tokens[i];
  growth_ = {};
  is_ = state::ready;
}

std::shared_ptr<const class_tree> class_trees::of(const token_tree& plain,
                                                  const character_classes& classes, size_t work) {
  const std::lock_guard guard{lock_};
  const auto known =
      std::find_if(known_.begin(), known_.end(), [&](const auto& x) { return x.first == classes; });
  if (known != known_.end())
    known_.splice(known_.begin(), known_, known);
  else
    known_.emplace_front(classes, std::make_shared<class_tree>(plain, classes));
  if (known_.size() > kept_max) known_.pop_back();
  auto& tree = known_.front().second;
  tree->grow(plain, work);
  return tree->is() == class_tree::state::ready ? tree : nullptr;
}

} // namespace lamella::model
