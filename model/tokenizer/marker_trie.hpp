/// Finding the texts of whole tokens in a text.
#pragma once

#include "model/token.hpp"

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <vector>

namespace lamella::model {

/// A set of tokens that are recognised by their text as a whole: control tokens and user-defined
/// ones.
class marker_trie {
public:
  struct marker {
    token_id token = 0;
    size_t bytes = 0; ///< 0: none found
  };

  /// Adds a token; the first one of a text counts. Empty texts are ignored.
  void add(std::string_view text, token_id token, bool control) {
    if (text.empty()) return;
    first_[static_cast<unsigned char>(text[0])] = true;
    uint32_t node = 0;
    for (const char c : text) {
      const auto [edge, fresh] =
          edges_.try_emplace({node, c}, static_cast<uint32_t>(nodes_.size()));
      if (fresh) nodes_.emplace_back();
      node = edge->second;
    }
    if (!nodes_[node].ends) nodes_[node] = {true, control, token};
  }

  /// The longest marker at `at`; control tokens only if they end at or before `trusted_end`.
  marker longest(std::string_view text, size_t at, size_t trusted_end) const {
    marker best;
    if (!first_[static_cast<unsigned char>(text[at])]) return best;
    uint32_t node = 0;
    for (size_t i = at; i < text.size(); ++i) {
      const auto edge = edges_.find({node, text[i]});
      if (edge == edges_.end()) break;
      node = edge->second;
      const entry& here = nodes_[node];
      if (here.ends && (!here.control || i + 1 <= trusted_end)) best = {here.token, i + 1 - at};
    }
    return best;
  }

  /// The control token with exactly this text.
  std::optional<token_id> control(std::string_view text) const {
    uint32_t node = 0;
    for (const char c : text) {
      const auto edge = edges_.find({node, c});
      if (edge == edges_.end()) return {};
      node = edge->second;
    }
    if (!nodes_[node].ends || !nodes_[node].control) return {};
    return nodes_[node].token;
  }

private:
  struct entry {
    bool ends = false;
    bool control = false;
    token_id token = 0;
  };
  std::array<bool, 256> first_{};
  std::vector<entry> nodes_{1};
  std::map<std::pair<uint32_t, char>, uint32_t> edges_;
};

} // namespace lamella::model
