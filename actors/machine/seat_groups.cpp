#include "actors/machine/seat_groups.hpp"

#include <algorithm>

namespace lamella::actors {

using scheduler::seat_group;
using scheduler::worker_role;

std::vector<seat_group> seat_groups(const config::settings& options) {
  std::vector<seat_group> groups{worker_role::model};
  for (const auto& cell : cell_seats(options))
    if (const seat_group group{worker_role::attention, cell};
        std::ranges::find(groups, group) == groups.end())
      groups.push_back(group);
  if (options.pools.attention.cells.empty()) groups.push_back(worker_role::attention);
  if (options.pools.prefill.has_seats()) groups.push_back(worker_role::prefill);
  return groups;
}

std::vector<std::string> cell_seats(const config::settings& options) {
  std::vector<std::string> result;
  for (const auto& [name, cell] : options.pools.attention.cells)
    result.push_back(options.pools.attention.seats_of(name));
  return result;
}

const config::pool_settings& pool_of(const config::settings& options, worker_role role) {
  switch (role) {
  case worker_role::attention:
    return options.pools.attention;
  case worker_role::prefill:
    return options.pools.prefill;
  case worker_role::model:
    break;
  }
  return options.pools.model;
}

uint32_t members_needed(const config::settings& options, worker_role role) {
  const auto& attention = options.pools.attention;
  const bool parity = role == worker_role::attention && attention.cells.empty() && attention.parity;
  return pool_of(options, role).members + (parity ? 1 : 0);
}

const config::pool_settings& pool_of(const config::settings& options, const seat_group& group) {
  if (group.role == worker_role::attention && !group.cell.empty())
    return options.pools.attention.cells.at(group.cell);
  return pool_of(options, group.role);
}

bool is_in_process(const config::settings& options, worker_role role) {
  const auto groups = seat_groups(options);
  return std::ranges::all_of(groups, [&](const auto& x) {
    return x.role != role || pool_of(options, x).placement == config::placement::in_process;
  });
}

uint32_t members_needed(const config::settings& options, const seat_group& group) {
  const auto& cells = options.pools.attention.cells;
  if (group.role != worker_role::attention || cells.empty())
    return members_needed(options, group.role);
  uint32_t sum = 0;
  for (const auto& [name, cell] : cells)
    if (options.pools.attention.seats_of(name) == group.cell)
      sum += cell.members + (cell.parity ? 1 : 0); // also of a cell that is to get members
  return sum;
}

uint32_t spares_of(const config::settings& options, const seat_group& group) {
  const auto& pool = options.pools.attention;
  if (group.role != worker_role::attention || pool.cells.empty())
    return pool_of(options, group).spares;
  uint32_t most = 0;
  for (const auto& [name, cell] : pool.cells)
    if (pool.seats_of(name) == group.cell) most = std::max(most, cell.spares);
  return most;
}

} // namespace lamella::actors
