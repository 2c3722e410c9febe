/// Which attention cell changes its size when the autoscaler changes that of their pool (L-M19).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>

namespace lamella::scheduler {

/// An attention cell at one moment; it may have no members.
struct cell_look {
  uint32_t members = 0;
  uint64_t slots = 0, used = 0; ///< of its tables
  uint32_t least = 0;           ///< members that it keeps
  uint32_t most = 0;            ///< that it may have; 0: as many as the pool
  bool by_requests = false;     ///< its members keep whole requests: it has all sizes
  bool stays = false;           ///< it keeps its size

  double use() const {
    return slots > 0 ? static_cast<double>(used) / static_cast<double>(slots) : 0;
  }
};

/// A cell, by number, and the members that it shall have.
struct cell_step {
  size_t cell = 0;
  uint32_t members = 0;
};

/// The next size of a cell whose members share `heads` KV heads evenly: up from 0, or down to 0.
/// The same size where there is none.
constexpr uint32_t next_cell_size(uint32_t members, uint32_t heads, bool up) {
  for (auto x = members; up ? x++ < heads : x-- > 0;)
    if (x == 0 || heads % x == 0) return x;
  return members;
}

/// The step of a pool that shall grow (`up`) or shrink: the fullest cell grows, the emptiest one
/// shrinks, of equal ones the first. A cell without members is the last to grow. The pool grows to
/// `most` members and shrinks to `least`, and to one; where it is beyond these bounds, a step may
/// end short of them. Each cell stays within its own bounds. `may`: whether that step of a cell is
/// possible beside this; empty: each is. Nothing where no cell can. O(cells).
inline std::optional<cell_step>
step_of_cells(std::span<const cell_look> cells, uint32_t heads, bool up, uint32_t least,
              uint32_t most, const std::function<bool(const cell_step&)>& may = {}) {
  uint32_t all = 0;
  for (const auto& x : cells) all += x.members;
  std::optional<cell_step> best;
  const auto better = [&](const cell_look& x, const cell_look& y) {
    if (!up) return x.use() < y.use();
    return (x.members > 0) != (y.members > 0) ? x.members > 0 : x.use() > y.use();
  };
  for (size_t i = 0; i < cells.size(); ++i) {
    if (cells[i].stays) continue;
    const auto now = cells[i].members;
    const auto any = up ? now + 1 : now - std::min(now, 1u);
    const auto size = cells[i].by_requests ? any : next_cell_size(now, heads, up);
    const auto after = all - cells[i].members + size;
    if (up ? cells[i].most > 0 && size > cells[i].most : size < cells[i].least) continue;
    if (size == cells[i].members || (up ? after > most : after < std::max(1u, least))) continue;
    if (best && !better(cells[i], cells[best->cell])) continue;
    if (!may || may({i, size})) best = {i, size};
  }
  return best;
}

} // namespace lamella::scheduler
