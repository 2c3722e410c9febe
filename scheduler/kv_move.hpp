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

/// Slots that go from a table to one of the next epoch.
struct kv_move_load {
  uint32_t from_table = 0, to_table = 0, slots = 0;
  friend bool operator==(const kv_move_load&, const kv_move_load&) = default;
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

/// Bytes that a member of the next epoch gets, and those of its whole cache.
struct kv_member_bytes {
  uint64_t copied = 0, whole = 0;
  friend bool operator==(const kv_member_bytes&, const kv_member_bytes&) = default;
};

/// Of each member of the next epoch, by number. `slot_bytes`: of all heads of a slot.
inline std::vector<kv_member_bytes> bytes_of_members(const kv_move_shape& x,
                                                     const std::vector<kv_move_load>& loads,
                                                     uint64_t slot_bytes) {
  std::vector<kv_member_bytes> bytes(x.to.members());
  for (uint32_t i = 0; i < bytes.size(); ++i)
    bytes[i].whole =
        x.to.slots_of(x.to.cell_of(i)) * slot_bytes * x.to.heads(x.kv_heads, i).count / x.kv_heads;
  for (const auto& load : loads)
    for (const auto& copy : copies_of(x, load.from_table, load.to_table))
      bytes[copy.to].copied += load.slots * slot_bytes * copy.heads / x.kv_heads;
  return bytes;
}

} // namespace lamella::scheduler
