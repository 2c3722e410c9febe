#include "model/grammar/mask_walk.hpp"

#include <algorithm>

namespace lamella::model {

void mask_walk::begin() {
  mask_.words.assign((size_ + 31) / 32, 0);
  seen_.clear();
  work_ = 0;
}

bool mask_walk::run(state_id from, size_t work_max) {
  begin();
  work_max_ = work_max;
  return go_plain(from) && go_others(from);
}

void mask_walk::run_single_bytes(state_id from) {
  begin();
  for (const auto* tree : {&vocabulary_.plain(), &vocabulary_.others()})
    for (uint32_t i = 0; i + 1 < tree->nodes.size(); i = tree->nodes[i].behind) {
      const auto& node = tree->nodes[i];
      if (states_.near_step(from, node.byte) == grammar_states::dead) continue;
      for (auto t = node.first_token; t < tree->nodes[i + 1].first_token; ++t)
        allow(tree->tokens[t]);
    }
}

/// False where the work is too much.
bool mask_walk::count(state_id x) {
  if (x >= seen_.size()) seen_.resize(states_.states() + 1024);
  if (seen_[x]) return true;
  seen_[x] = true;
  work_ += 1 + states_.places_of(x);
  return work_ <= work_max_;
}

bool mask_walk::go_others(state_id from) {
  const auto& [nodes, tokens] = vocabulary_.others();
  std::vector<state_id> at(vocabulary_.depth() + 1, from); // by bytes from the root
  for (uint32_t i = 0; i + 1 < nodes.size();) {
    const auto& node = nodes[i];
    const auto next = states_.near_step(at[node.depth - 1], node.byte);
    if (next == grammar_states::dead) {
      i = node.behind;
      continue;
    }
    if (!count(next)) return false;
    at[node.depth] = next;
    for (auto t = node.first_token; t < nodes[i + 1].first_token; ++t) allow(tokens[t]);
    ++i;
  }
  return true;
}

bool mask_walk::go_plain(state_id from) {
  constexpr uint32_t worth_a_look = 512; // nodes
  const auto& [nodes, tokens] = vocabulary_.plain();
  const auto reach = plain_.of(from);
  const auto known = vocabulary_.plain_up_to(reach.least);
  std::copy_n(known.begin(), std::min(known.size(), mask_.words.size()), mask_.words.begin());
  if (!mask_.words.empty() && size_ % 32 != 0) mask_.words.back() &= (1u << size_ % 32) - 1;
  if (reach.nothing_more) return true;
  std::vector<state_id> at(vocabulary_.depth() + 1, from); // by bytes from the root
  std::vector<uint32_t> characters(at.size(), 0);          // in those bytes
  for (uint32_t i = 0; i + 1 < nodes.size();) {
    const auto& node = nodes[i];
    if (node.longest <= reach.least) { // is allowed
      i = node.behind;
      continue;
    }
    const auto next = states_.near_step(at[node.depth - 1], node.byte);
    if (next == grammar_states::dead) {
      i = node.behind;
      continue;
    }
    if (!count(next)) return false;
    at[node.depth] = next;
    const bool begins = (node.byte & 0xC0) != 0x80; // a character
    characters[node.depth] = characters[node.depth - 1u] + (begins ? 1 : 0);
    for (auto t = node.first_token; t < nodes[i + 1].first_token; ++t) allow(tokens[t]);
    const bool is_whole = nodes[i + 1].depth > node.depth && (nodes[i + 1].byte & 0xC0) != 0x80;
    if (is_whole && node.behind - i > worth_a_look
        && allow_below(i, next, characters[node.depth])) {
      i = node.behind;
      continue;
    }
    ++i;
  }
  return true;
}

/// Allows what is certain below a node. True: nothing else is to be found there.
bool mask_walk::allow_below(uint32_t i, state_id at, uint32_t characters) {
  const auto& [nodes, tokens] = vocabulary_.plain();
  const auto reach = plain_.of(at);
  const auto longest = characters + reach.least;
  if (reach.least > 0)
    for (auto t = nodes[i + 1].first_token; t < nodes[nodes[i].behind].first_token; ++t)
      if (vocabulary_.characters(t) <= longest) allow(tokens[t]);
  return reach.nothing_more || nodes[i].longest <= longest;
}

} // namespace lamella::model
