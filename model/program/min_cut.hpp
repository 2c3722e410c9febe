/// Minimum weighted cut of a directed graph (maximum flow, by Boost.Graph).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace lamella::model {

/// An edge with its weight. Use `uncuttable` for edges that must not be cut.
struct cut_edge {
  uint32_t from, to;
  uint64_t weight;
};

constexpr uint64_t uncuttable = uint64_t{1} << 44;

struct cut {
  uint64_t weight = 0;           ///< sum over the cut edges
  std::vector<bool> source_side; ///< per vertex; the smallest such side of least weight
};

/// Cuts `source` from `sink`. The weight is >= uncuttable when the two cannot be parted.
/// Cost: that of push-relabel, O(V^3) at worst; milliseconds for a thousand operators.
cut min_cut(uint32_t vertices, std::span<const cut_edge> edges, uint32_t source, uint32_t sink);

} // namespace lamella::model
