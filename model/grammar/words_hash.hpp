/// A hash of lists of numbers, such as sets of states.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace lamella::model {

struct words_hash {
  size_t operator()(const std::vector<uint32_t>& words) const {
    uint64_t hash = words.size();
    for (const auto w : words) hash = (hash ^ w) * 0x9E3779B97F4A7C15ull;
    return hash ^ (hash >> 29);
  }
};

} // namespace lamella::model
