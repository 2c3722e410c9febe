#include "net/api/stop_matcher.hpp"

#include <algorithm>
#include <utility>

namespace lamella::net {

stop_matcher::stop_matcher(const std::vector<std::string>& stops) : nodes_(1) {
  for (size_t index = 0; index < stops.size(); ++index) {
    lengths_.push_back(static_cast<uint32_t>(stops[index].size()));
    if (stops[index].empty()) continue;
    uint32_t at = 0;
    for (const char byte : stops[index]) {
      uint32_t below = child(at, byte);
      if (below == 0) {
        below = static_cast<uint32_t>(nodes_.size());
        auto& next = nodes_[at].next;
        const auto place = std::lower_bound(next.begin(), next.end(), std::pair{byte, uint32_t{0}});
        next.insert(place, {byte, below});
        const uint32_t depth = nodes_[at].depth + 1;
        nodes_.emplace_back();
        nodes_.back().depth = depth;
      }
      at = below;
    }
    if (nodes_[at].match == 0) nodes_[at].match = static_cast<uint32_t>(index + 1);
  }
  // Breadth first: the failure link of a node is found from that of its parent. A node that ends no
  // stop string itself inherits the (shorter) one its failure link ends.
  std::vector<uint32_t> order{0};
  for (size_t i = 0; i < order.size(); ++i) {
    const uint32_t parent = order[i];
    for (const auto& [byte, below] : nodes_[parent].next) {
      nodes_[below].fail = parent == 0 ? 0 : step(nodes_[parent].fail, byte);
      if (nodes_[below].match == 0) nodes_[below].match = nodes_[nodes_[below].fail].match;
      order.push_back(below);
    }
  }
}

uint32_t stop_matcher::child(uint32_t from, char byte) const {
  const auto& next = nodes_[from].next;
  const auto place = std::lower_bound(next.begin(), next.end(), std::pair{byte, uint32_t{0}});
  return place != next.end() && place->first == byte ? place->second : 0;
}

uint32_t stop_matcher::step(uint32_t from, char byte) const {
  for (;;) {
    if (const uint32_t below = child(from, byte)) return below;
    if (from == 0) return 0;
    from = nodes_[from].fail;
  }
}

std::string stop_matcher::feed(std::string_view text, bool ends) {
  if (matched_) return {};
  for (size_t i = 0; i < text.size(); ++i) {
    state_ = step(state_, text[i]);
    if (const uint32_t match = nodes_[state_].match; ends && match != 0) {
      matched_ = match - 1;
      held_.append(text, 0, i + 1);
      held_.resize(held_.size() - lengths_[*matched_]);
      return finish();
    }
  }
  // The state's depth is the longest end of the text that a stop string starts with.
  held_ += text;
  const size_t keep = nodes_[state_].depth;
  std::string released = held_.substr(0, held_.size() - keep);
  held_.erase(0, released.size());
  return released;
}

std::string stop_matcher::finish() {
  state_ = 0;
  return std::exchange(held_, {});
}

} // namespace lamella::net
