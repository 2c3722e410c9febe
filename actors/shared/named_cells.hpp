/// The attention cells in what MEMBERSHIP tells of the pools.
#pragma once

#include "actors/protocol/status.hpp"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lamella::actors {

/// The name of each cell and the newest change of it, by number; none where the pool is one.
inline std::vector<std::pair<std::string, pool_change>> named_cells(const system_status& told) {
  constexpr std::string_view prefix = "attention/";
  std::vector<std::pair<std::string, pool_change>> cells;
  for (const auto& x : told.changes)
    if (x.pool.starts_with(prefix)) cells.emplace_back(x.pool.substr(prefix.size()), x);
  return cells;
}

} // namespace lamella::actors
