/// The slot tables of attention cells that are cut by heads or by requests (L-M23, L-M24).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace lamella::scheduler {

/// Cells of an attention pool at most: the tables of a cell by requests are so far apart.
constexpr uint32_t cells_max = 32;

/// Members of each slot table of cells with so many members. `by_requests`: numbers of the cells of
/// which each member keeps whole requests, in a table of its own. Table i, below `cells_max`, is
/// that of cell i and of all its members, or has none where that cell is cut by requests; the
/// tables of such a cell are i + k * cells_max, k from 1. So a cell keeps its tables whatever
/// becomes of others, also when new ones come, and one that is cut otherwise gets new ones: its KV
/// then moves as that of one cell to another. Cost: O(tables).
inline std::vector<uint32_t> members_of_tables(const std::vector<uint32_t>& cells,
                                               const std::vector<uint32_t>& by_requests) {
  auto tables = cells;
  for (const auto cell : by_requests) {
    if (cell >= cells.size()) continue;
    tables[cell] = 0;
    if (const auto all = size_t{cell} + cells[cell] * size_t{cells_max} + 1; tables.size() < all)
      tables.resize(all);
    for (uint32_t k = 1; k <= cells[cell]; ++k) tables[cell + k * cells_max] = 1;
  }
  return tables;
}

/// The cell of such a table; of a pool without named cells, which is one: 0.
constexpr uint32_t cell_of_table(uint32_t table, size_t cells) {
  return cells == 0 ? 0 : table % cells_max;
}

/// The place of such a table among those of its cell, from 0; nothing of one by heads, which has
/// no other.
constexpr uint32_t place_of_table(uint32_t table, size_t cells) {
  return cells == 0 || table < cells_max ? 0 : table / cells_max - 1;
}

} // namespace lamella::scheduler
