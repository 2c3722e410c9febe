/// Sets of tokens.
#pragma once

#include "model/token.hpp"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace lamella::model {

/// The tokens that may be sampled: bit t % 32 of word t / 32 is 1 for an allowed token t. Tokens
/// beyond the end may not.
struct token_mask {
  std::vector<uint32_t> words;

  bool allows(token_id t) const {
    return t / 32 < words.size() && (words[t / 32] >> t % 32 & 1) != 0;
  }
  bool empty() const {
    return std::all_of(words.begin(), words.end(), [](uint32_t w) { return w == 0; });
  }
};

} // namespace lamella::model
