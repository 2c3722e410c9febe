/// The mini-batches of an iteration: a shard's rows in parts with frames of their own, so that it
/// attends to the first ones while the others are on the wire (V-M08; Lamina v1 5.2.1).
#pragma once

#include <cstdint>
#include <vector>

namespace lamella::gpu {

/// Consecutive rows of a shard.
struct row_range {
  uint32_t first = 0, count = 0;
  friend bool operator==(const row_range&, const row_range&) = default;
};

/// Up to `parts` ranges of about equal size, none of them empty. `one_each`: every row is of
/// another sequence; the rows of a prompt stay together, because its spans are not split.
inline std::vector<row_range> mini_batches(uint32_t rows, uint32_t parts, bool one_each) {
  std::vector<row_range> ranges;
  if (!one_each) parts = 1;
  for (uint32_t i = 0; i < parts; ++i) {
    const auto first = static_cast<uint32_t>(uint64_t{rows} * i / parts);
    const auto end = static_cast<uint32_t>(uint64_t{rows} * (i + 1) / parts);
    if (first < end) ranges.push_back({first, end - first});
  }
  return ranges;
}

} // namespace lamella::gpu
