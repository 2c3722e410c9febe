// Counts of the repeats that are open in states: what ambiguity.cpp asks of them.
#include "model/grammar/grammar_states.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

namespace lamella::model {

const std::vector<uint8_t>& grammar_states::telling_bytes(state_id x) {
  const auto& rules = grammar_->rules;
  std::array<uint64_t, 256> takers{}; // by byte: a hash of the places that take it, and where to
  const auto all = places(x);
  auto& result = telling_;
  result.clear();
  if (!all.empty() && all.front().at == all.back().at) { // its ways have no byte in common
    const auto& node = rules.nodes()[all.front().at];
    for (auto w = node.first_way; w < node.first_way + node.ways; ++w)
      result.push_back(grammar_->classes.first_of[w]);
    return result;
  }
  const auto& bytes = grammar_->classes.first;
  for (size_t begin = 0, end = 0; begin < all.size(); begin = end) {
    const auto at = all[begin].at;
    while (end < all.size() && all[end].at == at) ++end; // these take the same bytes
    for (const auto& w : rules.ways(rules.nodes()[at]))
      each_byte(w.set & grammar_->classes.firsts,
                [&](uint8_t b) { takers[b] = mix(mix(takers[b], at), w.next); });
  }
  visited_.clear();
  for (const auto b : bytes)
    if (takers[b] != 0 && visited_.insert(takers[b])) result.push_back(b);
  return result;
}

uint64_t grammar_states::nodes_of(state_id x) const {
  uint64_t hash = 0;
  auto before = std::numeric_limits<grammar::node_id>::max();
  for (const auto& p : places(x))
    if (p.at != std::exchange(before, p.at)) hash = mix(hash, p.at);
  return hash;
}

uint64_t grammar_states::innermost_of(state_id x) {
  constexpr int told = 3;
  auto& hashes = hashes_;
  hashes.clear();
  for (size_t i = 0; i < states_[x].places; ++i) {
    const auto p = places(x)[i];
    auto hash = mix(0, p.at);
    auto at = near_frame(p.top);
    for (int n = 0; n < told && at != bottom; ++n, at = frames_[at].below)
      hash = mix(mix(mix(hash, frames_[at].at), frames_[at].least), frames_[at].most);
    hashes.push_back(hash);
  }
  std::sort(hashes.begin(), hashes.end());
  hashes.erase(std::unique(hashes.begin(), hashes.end()), hashes.end());
  uint64_t all = 0;
  for (const auto h : hashes) all = mix(all, h);
  return all;
}

size_t grammar_states::most_alike(state_id x) const {
  const auto all = places(x);
  size_t most = 0;
  for (size_t begin = 0, end = 0; begin < all.size(); begin = end) {
    while (end < all.size() && all[end].at == all[begin].at) ++end;
    most = std::max(most, end - begin);
  }
  return most;
}

std::vector<grammar_states::state_id> grammar_states::past_counts(state_id x, visit_set& passed) {
  std::vector<frame_id> open;
  for (const auto& p : places(x))
    for (auto at = p.top; at != bottom && passed.insert(at); at = frames_[at].below)
      if (frames_[at].least > 0) open.push_back(at);
  std::vector<state_id> result;
  for (const auto at : open) {
    const auto f = frames_[at];
    const auto most = f.most == grammar::unbounded ? f.most : f.most - f.least;
    begin_state();
    enter_repeat(f.at, 0, most, f.below);
    reach_all();
    result.push_back(take_state());
  }
  return result;
}

uint32_t grammar_states::times_left(state_id x, state_id before) const {
  visit_set open;
  for (const auto& p : places(before))
    for (auto at = p.top; at != bottom && open.insert(at);) at = frames_[at].below;
  auto left = grammar::unbounded;
  uint32_t deepest = 0, deepest_before = 0;
  for (const auto& p : places(x)) deepest = std::max(deepest, frames_[p.top].depth);
  for (const auto& p : places(before))
    deepest_before = std::max(deepest_before, frames_[p.top].depth);
  if (deepest > deepest_before) left = depth_max - deepest;
  for (const auto& p : places(x))
    for (auto at = p.top; at != bottom && open.insert(at); at = frames_[at].below) {
      const auto& f = frames_[at];
      if (grammar_->rules.nodes()[f.at].what == grammar::kind::repeat)
        left = std::min(left, f.least > 0 ? f.least : f.most);
    }
  return left;
}

} // namespace lamella::model
