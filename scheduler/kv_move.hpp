/// Which member of an attention pool copies which KV heads to which member of the next epoch.
#pragma once

#include "scheduler/head_partition.hpp"

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
  uint32_t from = 1, to = 1;   ///< members
  bool whole_requests = false; ///< request partition
  std::set<uint32_t> kept{};   ///< members of the next epoch that store what they stored before
};

/// The copies that bring slots of a table to the next epoch. Head partition: every member takes its
/// heads from those that have them. Request partition: one member takes all heads of one. Members
/// in `kept` need none of their own.
inline std::vector<kv_copy> copies_of(const kv_move_shape& x, uint32_t from_table,
                                      uint32_t to_table) {
  if (x.whole_requests) {
    if (from_table == to_table && x.kept.contains(to_table)) return {};
    return {{from_table, to_table, 0, 0, x.kv_heads}};
  }
  std::vector<kv_copy> copies;
  for (uint32_t to = 0; to < x.to; ++to) {
    if (x.kept.contains(to)) continue;
    const auto wanted = heads_of(x.kv_heads, x.to, to);
    for (uint32_t from = 0; from < x.from; ++from) {
      const auto had = heads_of(x.kv_heads, x.from, from);
      const auto first = std::max(wanted.first, had.first);
      const auto end = std::min(wanted.first + wanted.count, had.first + had.count);
      if (first < end)
        copies.push_back({from, to, first - had.first, first - wanted.first, end - first});
    }
  }
  return copies;
}

} // namespace lamella::scheduler
