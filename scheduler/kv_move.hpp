/// Which member of an attention pool copies which KV heads to which member of the next epoch.
#pragma once

#include "scheduler/kv_layout.hpp"

#include <algorithm>
#include <cstdint>
#include <set>
#include <vector>

namespace lamella::scheduler {

/// A copy of some heads of some slots between two caches.
struct kv_copy {
  uint32_t from = 0, to = 0;           ///< members: of the present epoch, of the next one
  uint32_t from_head = 0, to_head = 0; ///< the first of the heads, in either cache
  uint32_t heads = 0;
  friend bool operator==(const kv_copy&, const kv_copy&) = default;
};

/// The pools that KV moves between.
struct kv_move_shape {
  uint32_t kv_heads = 1;
  kv_layout from, to;
  std::set<uint32_t> kept{}; ///< members of the next epoch that store what they stored before
};

/// The copies that bring slots of a table to a table of the next epoch: every member of the one
/// takes its heads from those members of the other that have them. Slots that stay in their table
/// need none to members in `kept`.
inline std::vector<kv_copy> copies_of(const kv_move_shape& x, uint32_t from_table,
                                      uint32_t to_table) {
  std::vector<kv_copy> copies;
  const auto first_to = x.to.first_of(to_table), first_from = x.from.first_of(from_table);
  for (uint32_t i = 0; i < x.to.cells[to_table].members; ++i) {
    const auto to = first_to + i;
    if (from_table == to_table && x.kept.contains(to)) continue;
    const auto wanted = x.to.heads(x.kv_heads, to);
    for (uint32_t k = 0; k < x.from.cells[from_table].members; ++k) {
      const auto had = x.from.heads(x.kv_heads, first_from + k);
      const auto first = std::max(wanted.first, had.first);
      const auto end = std::min(wanted.first + wanted.count, had.first + had.count);
      if (first < end)
        copies.push_back(
            {first_from + k, to, first - had.first, first - wanted.first, end - first});
    }
  }
  return copies;
}

} // namespace lamella::scheduler
