#include "model/grammar/mask_walk.hpp"

#include "base/utf8.hpp"

#include <algorithm>
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
  const auto reach = plain_.of(from);
  allow_plain_up_to(reach.least);
  if (reach.nothing_more) return true;
  // Few tokens are found sooner by their bytes; where states are few, all are soon enough. A tree
  // of classes grows by a part of it for each mask that wants it.
  constexpr limits few{4'096, 64}, few_states{no_limit, 256};
  constexpr size_t part = 8'192;
  const auto* classes = states_.classes_of(from);
  if (classes == nullptr) return go_bytes(from, reach, {}) == gone::all;
  auto by_bytes = go_bytes(from, reach, few);
  if (by_bytes != gone::dear) return by_bytes == gone::all;
  auto tree = vocabulary_.by_classes(*classes, part);
  if (tree == nullptr) {
    by_bytes = go_bytes(from, reach, few_states);
    if (by_bytes != gone::dear) return by_bytes == gone::all;
    tree = vocabulary_.by_classes(*classes, no_limit);
  }
  return tree ? go_classes(from, *tree) : go_bytes(from, reach, {}) == gone::all;
}

bool mask_walk::go_classes(state_id from, const class_tree& tree) {
  const auto& nodes = tree.nodes();
  std::vector<state_id> at(nodes.size(), grammar_states::dead);
  at[0] = from;
  std::string character;
  for (size_t i = 1; i < nodes.size(); ++i) {
    auto here = at[nodes[i].above];
    if (here == grammar_states::dead) continue;
    character.clear();
    append_utf8(character, nodes[i].character);
    for (const char byte : character) {
      if (here == grammar_states::dead) break;
      here = states_.near_step(here, static_cast<uint8_t>(byte));
      if (!count(here)) return false;
    }
    at[i] = here;
  }
  allow_classes(at, tree);
  return true;
}

/// Allows the tokens of the nodes that are not dead, or takes back those of the others.
void mask_walk::allow_classes(const std::vector<state_id>& at, const class_tree& tree) {
  size_t allowed = 0;
  for (size_t i = 0; i < at.size(); ++i)
    if (at[i] != grammar_states::dead) allowed += tree.tokens_at(i).size();
  const bool most = allowed > vocabulary_.plain().tokens.size() / 2;
  allow_plain_up_to(most ? token_trie::plain_characters_max : 0);
  for (size_t i = 0; i < at.size(); ++i) {
    if ((at[i] != grammar_states::dead) == most) continue;
    for (const auto t : tree.tokens_at(i))
      if (t < size_) mask_.words[t / 32] ^= 1u << t % 32;
  }
}

/// Allows the plain tokens of so many characters and fewer, and no others.
void mask_walk::allow_plain_up_to(uint32_t characters) {
  const auto known = vocabulary_.plain_up_to(characters);
  std::copy_n(known.begin(), std::min(known.size(), mask_.words.size()), mask_.words.begin());
  if (!mask_.words.empty() && size_ % 32 != 0) mask_.words.back() &= (1u << size_ % 32) - 1;
}

/// Dear: there are more nodes, or states that were made for them, than that.
mask_walk::gone mask_walk::go_bytes(state_id from, const plain_reach::result& reach, limits most) {
  constexpr uint32_t worth_a_look = 512; // nodes
  const auto states_before = states_.states();
  const bool all_nodes = most.nodes == no_limit;
  size_t gone_to = 0;
  const auto& nodes = vocabulary_.plain().nodes;
  const auto& tokens = vocabulary_.plain().tokens;
  std::vector<state_id> at(vocabulary_.depth() + 1, from); // by bytes from the root
  std::vector<uint32_t> characters(at.size(), 0);          // in those bytes
  for (uint32_t i = 0; i + 1 < nodes.size();) {
    const auto& node = nodes[i];
    if (node.longest <= reach.least) { // is allowed
      i = node.behind;
      continue;
    }
    if (++gone_to > most.nodes || states_.states() - states_before > most.states) return gone::dear;
    const auto next = states_.near_step(at[node.depth - 1], node.byte);
    if (next == grammar_states::dead) {
      i = node.behind;
      continue;
    }
    if (!count(next)) return gone::too_much;
    at[node.depth] = next;
    const bool begins = (node.byte & 0xC0) != 0x80; // a character
    characters[node.depth] = characters[node.depth - 1u] + (begins ? 1 : 0);
    allow(tokens, node.first_token, nodes[i + 1].first_token);
    const auto is_whole = [&] {
      return nodes[i + 1].depth > node.depth && (nodes[i + 1].byte & 0xC0) != 0x80;
    };
    if (node.behind - i > worth_a_look && all_nodes && is_whole()
        && allow_below(i, next, characters[node.depth])) {
      i = node.behind;
      continue;
    }
    ++i;
  }
  return gone::all;
}

/// Allows what is certain below a node. True: nothing else is to be found there.
bool mask_walk::allow_below(uint32_t i, state_id at, uint32_t characters) {
  const auto& nodes = vocabulary_.plain().nodes;
  const auto& tokens = vocabulary_.plain().tokens;
  const auto reach = plain_.of(at);
  const auto longest = characters + reach.least;
  if (reach.least > 0)
    for (auto t = nodes[i + 1].first_token; t < nodes[nodes[i].behind].first_token; ++t)
      if (vocabulary_.characters(t) <= longest) allow(tokens[t]);
  return reach.nothing_more || nodes[i].longest <= longest;
}

} // namespace lamella::model
