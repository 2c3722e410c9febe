#include "scheduler/pull_plan.hpp"

#include "scheduler/slot_pool.hpp"

#include <algorithm>
#include <stdexcept>

namespace lamella::scheduler {

void append_positions(std::vector<slot_run>& to, std::span<const slot_run> runs, uint32_t first,
                      uint32_t count) {
  for (const auto& run : runs) {
    if (count == 0) return;
    if (first >= run.length) {
      first -= run.length;
      continue;
    }
    const slot_run part{run.first + first, std::min(count, run.length - first)};
    append(to, {&part, 1});
    count -= part.length;
    first = 0;
  }
  if (count > 0) throw std::logic_error("positions without slots");
}

pull_cut cut_rows(std::span<const slot_run> runs, uint32_t rows_max) {
  pull_cut cut;
  pull_piece piece;
  for (auto run : runs)
    while (run.length > 0) {
      const auto count = std::min(run.length, rows_max - piece.rows);
      cut.runs.push_back({run.first, count});
      piece.rows += count;
      ++piece.run_count;
      run.first += count;
      run.length -= count;
      if (piece.rows < rows_max) continue;
      cut.pieces.push_back(piece);
      piece = {0, static_cast<uint32_t>(cut.runs.size()), 0};
    }
  if (piece.rows > 0) cut.pieces.push_back(piece);
  return cut;
}

} // namespace lamella::scheduler
