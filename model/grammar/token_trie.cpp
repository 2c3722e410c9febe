#include "model/grammar/token_trie.hpp"

#include <algorithm>
#include <limits>
#include <string_view>

namespace lamella::model {

namespace {

/// Longer tokens (runs of blanks, mostly) are never needed.
constexpr size_t token_bytes_max = 256;

size_t common_bytes(std::string_view a, std::string_view b) {
  return static_cast<size_t>(std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first
                             - a.begin());
}

} // namespace

token_trie::token_trie(std::shared_ptr<const tokenizer> vocabulary,
                       std::span<const token_id> specials)
    : text_{std::move(vocabulary)} {
  const auto& text = *text_;
  for (token_id t = 0; t < text.vocabulary(); ++t) {
    const auto bytes = text.token_bytes(t);
    const bool unwanted =
        text.is_special(t) && std::find(specials.begin(), specials.end(), t) == specials.end();
    if (unwanted || bytes.empty() || bytes.size() > token_bytes_max) continue;
    tokens_.push_back(t);
    if (bytes.size() == 1) single_bytes_.set(static_cast<unsigned char>(bytes[0]));
  }
  std::sort(tokens_.begin(), tokens_.end(), [&](token_id a, token_id b) {
    const auto left = text.token_bytes(a), right = text.token_bytes(b);
    return left != right ? left < right : a < b;
  });
  std::vector<uint32_t> open; // nodes from the root to the last one
  const auto close = [&](size_t depth) {
    for (; open.size() > depth; open.pop_back())
      nodes_[open.back()].behind = static_cast<uint32_t>(nodes_.size());
  };
  std::string_view last;
  for (size_t i = 0; i < tokens_.size(); ++i) {
    const auto bytes = text.token_bytes(tokens_[i]);
    const auto shared = common_bytes(last, bytes);
    if (shared < bytes.size()) close(shared);
    for (auto d = shared; d < bytes.size(); ++d) {
      // Tokens of a node are those up to the next one's first: nodes on the way have none.
      open.push_back(static_cast<uint32_t>(nodes_.size()));
      nodes_.push_back({0, static_cast<uint32_t>(i), static_cast<uint16_t>(d + 1),
                        static_cast<uint8_t>(bytes[d])});
    }
    depth_ = std::max(depth_, static_cast<uint32_t>(bytes.size()));
    last = bytes;
  }
  close(0);
  nodes_.push_back(
      {static_cast<uint32_t>(nodes_.size()), static_cast<uint32_t>(tokens_.size()), 0, 0});
}

} // namespace lamella::model
