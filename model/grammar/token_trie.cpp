#include "model/grammar/token_trie.hpp"

#include "base/utf8.hpp"

#include <algorithm>
#include <string_view>

namespace lamella::model {

namespace {

/// Longer tokens (runs of blanks, mostly) are never needed.
constexpr size_t token_bytes_max = 256;

size_t common_bytes(std::string_view a, std::string_view b) {
  return static_cast<size_t>(std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first
                             - a.begin());
}

/// Characters of a plain token; 0: it is none.
uint32_t plain_characters(std::string_view bytes) {
  uint32_t count = 0;
  for (size_t i = 0; i < bytes.size(); ++count) {
    const auto unit = decode_utf8(bytes, i);
    const auto c = unit.code_point;
    if (unit.kind != utf8_unit::state::valid || c < 0x20 || c == '"' || c == '\\') return 0;
    i += unit.bytes;
  }
  return count <= token_trie::plain_characters_max ? count : 0;
}

/// The characters of the tokens that were let in.
class few_characters {
public:
  /// False where there would be too many of them.
  bool let_in(std::string_view token) {
    std::vector<char32_t> fresh;
    for (size_t i = 0; i < token.size();) {
      const auto unit = decode_utf8(token, i);
      if (!is_there_[unit.code_point]) fresh.push_back(unit.code_point);
      i += unit.bytes;
    }
    if (count_ + fresh.size() > character_tree::characters_max) return false;
    for (const auto c : fresh) {
      count_ += is_there_[c] ? 0 : 1;
      is_there_[c] = true;
    }
    return true;
  }

private:
  std::vector<bool> is_there_ = std::vector<bool>(0x110000);
  size_t count_ = 0;
};

} // namespace

token_trie::token_trie(std::shared_ptr<const tokenizer> vocabulary,
                       std::span<const token_id> specials)
    : text_{std::move(vocabulary)} {
  const auto& text = *text_;
  std::vector<token_id> plain, others;
  few_characters characters;
  for (token_id t = 0; t < text.vocabulary(); ++t) {
    const auto bytes = text.token_bytes(t);
    const bool unwanted =
        text.is_special(t) && std::find(specials.begin(), specials.end(), t) == specials.end();
    if (unwanted || bytes.empty() || bytes.size() > token_bytes_max) continue;
    const bool is_plain = plain_characters(bytes) > 0 && characters.let_in(bytes);
    (is_plain ? plain : others).push_back(t);
    depth_ = std::max(depth_, static_cast<uint32_t>(bytes.size()));
    if (bytes.size() == 1) single_bytes_.set(static_cast<unsigned char>(bytes[0]));
  }
  plain_ = tree_of(std::move(plain));
  others_ = tree_of(std::move(others));
  count_characters();
  by_characters_ = character_tree{plain_};
}

void token_trie::count_characters() {
  for (auto& words : plain_up_to_) words.resize((text_->vocabulary() + 31) / 32);
  for (const auto t : plain_.tokens) {
    const auto count = plain_characters(text_->token_bytes(t));
    characters_.push_back(static_cast<uint8_t>(count));
    for (auto n = count; n < plain_up_to_.size(); ++n) plain_up_to_[n][t / 32] |= 1u << t % 32;
  }
  auto& nodes = plain_.nodes;
  for (size_t i = 0; i + 1 < nodes.size(); ++i)
    for (auto t = nodes[i].first_token; t < nodes[nodes[i].behind].first_token; ++t)
      nodes[i].longest = std::max(nodes[i].longest, characters_[t]);
}

token_trie::tree token_trie::tree_of(std::vector<token_id> tokens) const {
  const auto& text = *text_;
  std::sort(tokens.begin(), tokens.end(), [&](token_id a, token_id b) {
    const auto left = text.token_bytes(a), right = text.token_bytes(b);
    return left != right ? left < right : a < b;
  });
  tree made;
  auto& nodes = made.nodes;
  std::vector<uint32_t> open; // nodes from the root to the last one
  const auto close = [&](size_t depth) {
    for (; open.size() > depth; open.pop_back())
      nodes[open.back()].behind = static_cast<uint32_t>(nodes.size());
  };
  std::string_view last;
  for (size_t i = 0; i < tokens.size(); ++i) {
    const auto bytes = text.token_bytes(tokens[i]);
    const auto shared = common_bytes(last, bytes);
    if (shared < bytes.size()) close(shared);
    for (auto d = shared; d < bytes.size(); ++d) {
      // Tokens of a node are those up to the next one's first: nodes on the way
      // have none.
      open.push_back(static_cast<uint32_t>(nodes.size()));
      nodes.push_back({0, static_cast<uint32_t>(i), static_cast<uint16_t>(d + 1),
                       static_cast<uint8_t>(bytes[d]), 0});
    }
    last = bytes;
  }
  close(0);
  nodes.push_back(
      {static_cast<uint32_t>(nodes.size()), static_cast<uint32_t>(tokens.size()), 0, 0, 0});
  for (uint32_t i = 0; i + 1 < nodes.size(); ++i) {
    made.node_of.resize(nodes[i + 1].first_token, i);
    made.depth = std::max<uint32_t>(made.depth, nodes[i].depth);
  }
  made.tokens = std::move(tokens);
  return made;
}

} // namespace lamella::model
