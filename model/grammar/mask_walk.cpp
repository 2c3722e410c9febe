#include "model/grammar/mask_walk.hpp"

#include "base/utf8.hpp"

#include <algorithm>
#include <array>
#include <string>

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
bool mask_walk::count_new(state_id x) {
  if (x >= seen_.size()) seen_.resize(states_.states() + 1024);
  seen_[x] = 1;
  work_ += 1 + states_.places_of(x);
  return work_ <= work_max_;
}

bool mask_walk::go_others(state_id from) {
  const auto& nodes = vocabulary_.others().nodes;
  const auto& tokens = vocabulary_.others().tokens;
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
    allow(tokens, node.first_token, nodes[i + 1].first_token);
    ++i;
  }
  return true;
}

bool mask_walk::go_plain(state_id from) {
  const auto reach = known_.plain.of(from);
  allow_plain_up_to(reach.least);
  if (reach.nothing_more) return true;
  if (const auto by_bytes = go_few_bytes(from, reach.least); by_bytes != gone::dear)
    return by_bytes == gone::all;
  constexpr size_t part = 8'192; // some 0.05 ms
  if (const auto* classes = states_.classes_of(from)) {
    const auto [tree, is_ready] = vocabulary_.by_classes(*classes, part);
    return is_ready ? go_classes(from, *tree)
                    : go_characters(from, reach.least, tree->characters());
  }
  if (!known_.by_bytes) known_.by_bytes.emplace(vocabulary_.by_characters(), states_.bytes());
  return go_characters(from, reach.least, *known_.by_bytes);
}

/// The number of the state behind a character; unknown where the work is too much.
uint32_t mask_walk::make_step(character_steps& steps, uint32_t from, char32_t character) {
  std::string bytes;
  append_utf8(bytes, character);
  auto at = steps.state(from);
  for (const char byte : bytes) {
    if (at == grammar_states::dead) break;
    at = states_.near_step(at, static_cast<uint8_t>(byte));
    if (at != grammar_states::dead && !count(at)) return character_steps::unknown;
  }
  return steps.number(at);
}

bool mask_walk::go_classes(state_id from, const class_tree& tree) {
  const auto& nodes = tree.nodes();
  const auto& one = tree.characters().one;
  character_steps steps{one.size()};
  std::vector<uint32_t> at(nodes.size(), character_steps::dead);
  at[0] = steps.number(from);
  for (size_t i = 1; i < nodes.size(); ++i) {
    const auto above = at[nodes[i].above];
    const auto of_class = nodes[i].of_class;
    if (above == character_steps::dead) continue;
    at[i] = steps.known(above, of_class);
    if (at[i] != character_steps::unknown) continue;
    at[i] = make_step(steps, above, one[of_class]);
    if (at[i] == character_steps::unknown) return false;
    steps.learn(above, of_class, at[i]);
  }
  allow_classes(at, tree);
  return true;
}

/// Allows the tokens of the nodes that are not dead, or takes back those of the others.
void mask_walk::allow_classes(const std::vector<uint32_t>& at, const class_tree& tree) {
  size_t allowed = 0;
  for (size_t i = 0; i < at.size(); ++i)
    if (at[i] != character_steps::dead) allowed += tree.tokens_at(i).size();
  const bool most = allowed > vocabulary_.plain().tokens.size() / 2;
  allow_plain_up_to(most ? token_trie::plain_characters_max : 0);
  for (size_t i = 0; i < at.size(); ++i) {
    if ((at[i] != character_steps::dead) == most) continue;
    for (const auto t : tree.tokens_at(i))
      if (t < size_) mask_.words.data()[t / 32] ^= 1u << t % 32;
  }
}

/// Allows the plain tokens of so many characters and fewer, and no others.
void mask_walk::allow_plain_up_to(uint32_t characters) {
  const auto known = vocabulary_.plain_up_to(characters);
  std::copy_n(known.begin(), std::min(known.size(), mask_.words.size()), mask_.words.begin());
  if (!mask_.words.empty() && size_ % 32 != 0) mask_.words.back() &= (1u << size_ % 32) - 1;
}

/// Few tokens are found soonest by their bytes. Dear: there are more nodes than few, or more states
/// were made for them.
mask_walk::gone mask_walk::go_few_bytes(state_id from, uint32_t least) {
  constexpr size_t nodes_max = 4'096, states_max = 64;
  const auto states_before = states_.states();
  size_t gone_to = 0;
  const auto& nodes = vocabulary_.plain().nodes;
  const auto& tokens = vocabulary_.plain().tokens;
  std::vector<state_id> at(vocabulary_.depth() + 1, from); // by bytes from the root
  for (uint32_t i = 0; i + 1 < nodes.size();) {
    const auto& node = nodes[i];
    if (node.longest <= least) { // is allowed
      i = node.behind;
      continue;
    }
    if (++gone_to > nodes_max || states_.states() - states_before > states_max) return gone::dear;
    const auto next = states_.near_step(at[node.depth - 1], node.byte);
    if (next == grammar_states::dead) {
      i = node.behind;
      continue;
    }
    if (!count(next)) return gone::too_much;
    at[node.depth] = next;
    allow(tokens, node.first_token, nodes[i + 1].first_token);
    ++i;
  }
  return gone::all;
}

bool mask_walk::go_characters(state_id from, uint32_t least, const classed_characters& classes) {
  constexpr uint32_t worth_a_look = 512; // nodes
  const auto& all = vocabulary_.by_characters().nodes;
  const auto* const nodes = all.data();
  const auto count = static_cast<uint32_t>(all.size() - 1);
  const auto* const class_of = classes.of.data();
  character_steps steps{classes.one.size()};
  std::array<uint32_t, 256> at{steps.number(from)}; // by characters from the root
  for (uint32_t i = 0; i < count;) {
    const auto& node = nodes[i];
    const auto above = at[node.depth - 1u];
    const auto of_class = class_of[node.character];
    auto next = node.longest <= least ? character_steps::dead // is allowed
                                      : steps.known(above, of_class);
    if (next == character_steps::unknown) {
      next = make_step(steps, above, classes.one[of_class]);
      if (next == character_steps::unknown) return false;
      steps.learn(above, of_class, next);
    }
    if (next == character_steps::dead) {
      i = node.behind;
      continue;
    }
    at[node.depth] = next;
    allow(vocabulary_.plain().tokens, node.first_token, nodes[i + 1].first_token);
    const bool is_known = node.behind - i > worth_a_look && allow_below(i, steps.state(next));
    i = is_known ? node.behind : i + 1;
  }
  return true;
}

/// True: all that is allowed below a node of characters is certain, and allowed now.
bool mask_walk::allow_below(uint32_t i, state_id at) {
  const auto& nodes = vocabulary_.by_characters().nodes;
  const auto& tokens = vocabulary_.plain().tokens;
  const auto reach = known_.plain.of(at);
  const auto longest = nodes[i].depth + reach.least;
  if (!reach.nothing_more && nodes[i].longest > longest) return false;
  for (auto t = nodes[i + 1].first_token; t < nodes[nodes[i].behind].first_token; ++t)
    if (vocabulary_.characters(t) <= longest) allow(tokens[t]);
  return true;
}

} // namespace lamella::model
