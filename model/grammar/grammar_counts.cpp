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
  if (states_[x].behind == dead && !all.empty()
      && all.front().at == all.back().at) { // its ways have no byte in common
    const auto& node = rules.nodes()[all.front().at];
    for (auto w = node.first_way; w < node.first_way + node.ways; ++w)
      result.push_back(grammar_->classes.first_of[w]);
    return result;
  }
  const auto& bytes = grammar_->classes.first;
  auto before = std::numeric_limits<grammar::node_id>::max();
  each_place(x, [&](const place& p) { // those at one node take the same bytes
    if (p.at == std::exchange(before, p.at)) return;
    for (const auto& w : rules.ways(rules.nodes()[p.at]))
      each_byte(w.set & grammar_->classes.firsts,
                [&](uint8_t b) { takers[b] = mix(mix(takers[b], p.at), w.next); });
  });
  visited_.clear();
  for (const auto b : bytes)
    if (takers[b] != 0 && visited_.insert(takers[b])) result.push_back(b);
  return result;
}

uint64_t grammar_states::nodes_of(state_id x) const {
  uint64_t hash = 0;
  auto before = std::numeric_limits<grammar::node_id>::max();
  each_place(x, [&](const place& p) {
    if (p.at != std::exchange(before, p.at)) hash = mix(hash, p.at);
  });
  return hash;
}

uint64_t grammar_states::innermost_of(state_id x) {
  constexpr int told = 3;
  auto& hashes = hashes_;
  hashes.clear();
  each_place(x, [&](const place& p) {
    auto hash = mix(0, p.at);
    auto at = near_frame(p.top);
    for (int n = 0; n < told && at != bottom; ++n, at = frames_[at].below)
      hash = mix(mix(mix(hash, frames_[at].at), frames_[at].least), frames_[at].most);
    hashes.push_back(hash);
  });
  std::sort(hashes.begin(), hashes.end());
  hashes.erase(std::unique(hashes.begin(), hashes.end()), hashes.end());
  uint64_t all = 0;
  for (const auto h : hashes) all = mix(all, h);
  return all;
}

size_t grammar_states::most_alike(state_id x) const {
  size_t most = 0, alike = 0;
  auto before = std::numeric_limits<grammar::node_id>::max();
  each_place(x, [&](const place& p) {
    alike = p.at == std::exchange(before, p.at) ? alike + 1 : 1;
    most = std::max(most, alike);
  });
  return most;
}

std::vector<grammar_states::state_id> grammar_states::past_counts(state_id x, visit_set& passed) {
  std::vector<frame_id> open;
  each_place(x, [&](const place& p) {
    for (auto at = p.top; at != bottom && passed.insert(at); at = frames_[at].below)
      if (frames_[at].least > 0) open.push_back(at);
  });
  std::vector<state_id> result;
  for (const auto at : open) {
    const auto f = frames_[at];
    const auto most = f.most == grammar::unbounded ? f.most : f.most - f.least;
    begin_state();
    enter_repeat(f.at, 0, most, f.below);
    terminals_ = terminals::end;
    reach_all();
    result.push_back(take_ended_state());
  }
  return result;
}

uint32_t grammar_states::times_left(state_id x, state_id before) const {
  visit_set open;
  uint32_t deepest = 0, deepest_before = 0;
  each_place(before, [&](const place& p) {
    for (auto at = p.top; at != bottom && open.insert(at);) at = frames_[at].below;
    deepest_before = std::max(deepest_before, frames_[p.top].depth);
  });
  auto left = grammar::unbounded;
  each_place(x, [&](const place& p) { deepest = std::max(deepest, frames_[p.top].depth); });
  if (deepest > deepest_before) left = depth_max - deepest;
  each_place(x, [&](const place& p) {
    for (auto at = p.top; at != bottom && open.insert(at); at = frames_[at].below) {
      const auto& f = frames_[at];
      if (grammar_->rules.nodes()[f.at].what == grammar::kind::repeat)
        left = std::min(left, f.least > 0 ? f.least : f.most);
    }
  });
  return left;
}

} // namespace lamella::model
