#include "model/grammar/character_tree.hpp"

#include "base/utf8.hpp"

#include <algorithm>
#include <string>
#include <unordered_map>

namespace lamella::model {

namespace {

/// A character of which some bytes are known.
struct begun_character {
  char32_t bits = 0;
  uint32_t more = 0; ///< bytes that it lacks

  begun_character then(uint8_t byte) const {
    if (byte < 0x80) return {byte, 0};
    if (byte < 0xC0) return {bits << 6 | (byte & 0x3Fu), more - 1};
    if (byte < 0xE0) return {byte & 0x1Fu, 1};
    if (byte < 0xF0) return {byte & 0x0Fu, 2};
    return {byte & 0x07u, 3};
  }
};

/// Calls `whole(c, i, depth)` for each node `i` of bytes that ends a character, in preorder.
template <class Whole> void each_character(const token_tree& plain, Whole&& whole) {
  struct place {
    begun_character last;
    uint32_t depth = 0; ///< whole characters
  };
  std::vector<place> at(plain.depth + 1); // by bytes from the root
  for (uint32_t i = 0; i + 1 < plain.nodes.size(); ++i) {
    const auto& node = plain.nodes[i];
    const auto& above = at[node.depth - 1u];
    auto& here = at[node.depth];
    here = {above.last.then(node.byte), above.depth};
    if (here.last.more == 0) whole(here.last.bits, i, ++here.depth);
  }
}

} // namespace

character_tree::character_tree(const token_tree& plain) {
  constexpr char32_t characters_end = 0x110000;
  std::vector<uint16_t> number(characters_end);
  std::vector<bool> is_there(characters_end);
  each_character(plain, [&](char32_t c, uint32_t, uint32_t) { is_there[c] = true; });
  for (char32_t c = 0; c < characters_end; ++c) {
    if (!is_there[c]) continue;
    number[c] = static_cast<uint16_t>(characters.size());
    characters.push_back(c);
  }
  std::vector<uint32_t> open; // nodes from the root to the last one
  const auto close = [&](size_t depth) {
    for (; open.size() > depth; open.pop_back())
      nodes[open.back()].behind = static_cast<uint32_t>(nodes.size());
  };
  each_character(plain, [&](char32_t c, uint32_t i, uint32_t depth) {
    close(depth - 1);
    open.push_back(static_cast<uint32_t>(nodes.size()));
    const auto& last = plain.nodes[i]; // what is above it in its character has no tokens
    nodes.push_back({0, last.first_token, number[c], static_cast<uint8_t>(depth), last.longest});
  });
  close(0);
  const auto count = static_cast<uint32_t>(nodes.size());
  nodes.push_back({count, static_cast<uint32_t>(plain.tokens.size()), 0, 0, 0});
}

classed_characters::classed_characters(const character_tree& tree,
                                       const character_classes& classes) {
  constexpr uint16_t none = 0xFFFF;
  std::vector<uint16_t> number(classes.count(), none);
  size_t range = 0;
  for (const auto c : tree.characters) {
    while (range + 1 < classes.ranges.size() && classes.ranges[range + 1].first <= c) ++range;
    auto& known = number[classes.ranges[range].of];
    if (known == none) {
      known = static_cast<uint16_t>(one.size());
      one.push_back(c);
    }
    of.push_back(known);
  }
}

classed_characters::classed_characters(const character_tree& tree, const byte_classes& classes) {
  std::unordered_map<uint64_t, uint16_t> number;
  std::string bytes;
  for (const auto c : tree.characters) {
    bytes.clear();
    append_utf8(bytes, c);
    uint64_t all = 0;
    for (const char byte : bytes) all = all << 9 | 1u << 8 | classes.of[static_cast<uint8_t>(byte)];
    const auto [known, is_new] = number.try_emplace(all, static_cast<uint16_t>(one.size()));
    if (is_new) one.push_back(c);
    of.push_back(known->second);
  }
}

} // namespace lamella::model
