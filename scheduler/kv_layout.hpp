/// How an attention pool lays its KV out: cells of members (L-M23, L-M24; Lamina 5).
#pragma once

#include "scheduler/head_partition.hpp"

#include <algorithm>
#include <compare>
#include <cstdint>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

namespace lamella::scheduler {

/// A slot table and the members that store it, each an equal share of the KV heads.
struct kv_cell {
  uint32_t members = 1; ///< none: the cell is not in use
  uint32_t slots = 0;   ///< of its table; every member has as many, for its heads
  bool parity = false;  ///< one more member holds the parity of these (decision 23)
  friend bool operator==(const kv_cell&, const kv_cell&) = default;
};

/// What a member of an attention pool stores: a cache belongs to one of these, and serves no other.
struct kv_part {
  uint32_t first_head = 0, heads = 0;
  uint32_t table = 0; ///< that of its cell
  uint32_t slots = 0;
  bool parity = false; ///< of the heads of its cell's members
  friend auto operator<=>(const kv_part&, const kv_part&) = default;
};

/// The cells of a pool. Table i is that of cell i. Members are numbered through all cells in order;
/// those that hold the parity of a cell come after them, in the order of their cells. A pool that
/// is cut by heads is one cell; one that is cut by requests has a cell per member.
struct kv_layout {
  std::vector<kv_cell> cells;

  /// Of all cells, without those that hold parity.
  uint32_t members() const {
    uint32_t sum = 0;
    for (const auto& x : cells) sum += x.members;
    return sum;
  }
  /// Of all cells, with those that hold parity.
  uint32_t all() const { return members() + static_cast<uint32_t>(parity_cells().size()); }
  uint32_t tables() const { return static_cast<uint32_t>(cells.size()); }
  /// Whether that table exists and has members.
  bool in_use(uint32_t cell) const { return cell < cells.size() && cells[cell].members > 0; }
  /// Slots of a table; 0 where its cell is not in use.
  uint32_t slots_of(uint32_t cell) const { return in_use(cell) ? cells[cell].slots : 0; }
  /// Of all tables in use.
  uint64_t slots() const {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < tables(); ++i) sum += slots_of(i);
    return sum;
  }
  /// Slots of the largest table.
  uint32_t largest() const {
    uint32_t most = 0;
    for (uint32_t i = 0; i < tables(); ++i) most = std::max(most, slots_of(i));
    return most;
  }
  /// Slots of the smallest table in use.
  uint32_t smallest() const {
    auto least = largest();
    for (uint32_t i = 0; i < tables(); ++i)
      if (in_use(i)) least = std::min(least, slots_of(i));
    return least;
  }
  /// Fewest members of a cell in use: a member of it has the most heads.
  uint32_t fewest() const {
    uint32_t least = 0;
    for (const auto& x : cells)
      if (x.members > 0 && (least == 0 || x.members < least)) least = x.members;
    return std::max(1u, least);
  }
  /// The number of a cell's first member.
  uint32_t first_of(uint32_t cell) const {
    uint32_t first = 0;
    for (uint32_t i = 0; i < cell; ++i) first += cells[i].members;
    return first;
  }
  /// The cell of that member, or the one whose parity it holds.
  uint32_t cell_of(uint32_t member) const {
    for (uint32_t i = 0; i < tables(); ++i) {
      if (member < cells[i].members) return i;
      member -= cells[i].members;
    }
    const auto with = parity_cells();
    return member < with.size() ? with[member] : 0;
  }
  /// The cells in use whose parity a member holds, ascending.
  std::vector<uint32_t> parity_cells() const {
    std::vector<uint32_t> result;
    for (uint32_t i = 0; i < tables(); ++i)
      if (in_use(i) && cells[i].parity) result.push_back(i);
    return result;
  }
  bool has_parity(uint32_t cell) const { return in_use(cell) && cells[cell].parity; }
  /// The number of the member that holds, or would hold, the parity of that cell.
  uint32_t holder_of(uint32_t cell) const {
    uint32_t number = members();
    for (const auto other : parity_cells())
      if (other < cell) ++number;
    return number;
  }
  /// The numbers of a cell's members, and at the end of the one that holds its parity, if any.
  std::vector<uint32_t> members_of(uint32_t cell) const {
    std::vector<uint32_t> result(cells.at(cell).members);
    std::iota(result.begin(), result.end(), first_of(cell));
    if (has_parity(cell)) result.push_back(holder_of(cell));
    return result;
  }
  /// The same cells, of which these have parity and no others.
  kv_layout with_parity(const std::vector<uint32_t>& with) const {
    auto result = *this;
    for (uint32_t i = 0; i < tables(); ++i)
      result.cells[i].parity = std::ranges::count(with, i) > 0;
    return result;
  }
  /// The heads of that member, of the model's `kv_heads`.
  head_range heads(uint32_t kv_heads, uint32_t member) const {
    const auto cell = cell_of(member);
    if (member >= members()) return heads_of(kv_heads, cells[cell].members, 0);
    return heads_of(kv_heads, cells[cell].members, member - first_of(cell));
  }
  /// What that member stores; numbers from `members()` on hold parity.
  kv_part part(uint32_t kv_heads, uint32_t member) const {
    const auto cell = cell_of(member);
    const auto range = heads(kv_heads, member);
    return {range.first, range.count, cell, cells[cell].slots, member >= members()};
  }
  friend bool operator==(const kv_layout&, const kv_layout&) = default;
};

/// Why the members of a cell cannot store `kv_heads` heads in equal shares, or nothing (L-M24).
inline std::optional<std::string> refuse_layout(uint32_t kv_heads, const kv_layout& x) {
  if (x.members() == 0) return "an attention pool needs at least one member";
  for (const auto& cell : x.cells)
    if (cell.members > 0)
      if (auto why = refuse_partition(kv_heads, cell.members)) return why;
  return std::nullopt;
}

/// Who had the place of each member in the layout before: its number there, or one that nobody has
/// where the cell was smaller or had no parity.
inline std::vector<uint32_t> members_before(const kv_layout& before, const kv_layout& now) {
  std::vector<uint32_t> result;
  const auto none = before.all();
  for (uint32_t i = 0; i < now.members(); ++i) {
    const auto cell = now.cell_of(i);
    const auto index = i - now.first_of(cell);
    const bool was = cell < before.tables() && index < before.cells[cell].members;
    result.push_back(was ? before.first_of(cell) + index : none);
  }
  for (const auto cell : now.parity_cells())
    result.push_back(before.has_parity(cell) ? before.holder_of(cell) : none);
  return result;
}

} // namespace lamella::scheduler
