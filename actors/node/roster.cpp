#include "actors/node/roster.hpp"

#include "actors/machine/seat_groups.hpp"
#include "actors/machine/sizing.hpp"
#include "config/cells.hpp"

namespace lamella::actors {

using config::placement;
using scheduler::worker_role;

namespace {

/// Members on the seats of a group, that with the parity not counted.
uint32_t size_of(const config::settings& options, const scheduler::seat_group& group) {
  const auto& attention = options.pools.attention;
  if (group.role != worker_role::attention || attention.cells.empty())
    return pool_of(options, group.role).members;
  uint32_t sum = 0;
  for (const auto& [name, cell] : attention.cells)
    if (attention.seats_of(name) == group.cell) sum += cell.members;
  return sum;
}

} // namespace

std::map<scheduler::seat_group, uint32_t> extra_seats_of(const config::settings& options) {
  std::map<scheduler::seat_group, uint32_t> result;
  for (const auto& group : seat_groups(options))
    result[group] =
        members_needed(options, group) - size_of(options, group) + spares_of(options, group);
  return result;
}

scheduler::seat_plan seats_of(const config::settings& options) {
  scheduler::seat_plan plan;
  for (const auto& [group, extra] : extra_seats_of(options))
    if (const auto members = size_of(options, group); members > 0) plan.add(group, members + extra);
  return plan;
}

cell_roster roster_of(const config::settings& options, const std::set<std::string>& taken) {
  cell_roster x;
  x.seats = cell_seats(options);
  x.configured.cells = cell_sizes(options);
  x.configured.by_requests = cells_by_requests(options);
  x.configured.kv_bytes = kv_bytes_of_cells(options);
  for (const auto& [name, cell] : options.pools.attention.cells) {
    if (taken.contains(name)) x.taken.insert(static_cast<uint32_t>(x.names.size()));
    x.names.push_back(name);
  }
  x.extra_seats = extra_seats_of(options);
  std::erase_if(x.extra_seats,
                [](const auto& y) { return y.first.role != worker_role::attention; });
  for (const auto& group : seat_groups(options)) {
    const auto where = pool_of(options, group).placement;
    if (where == placement::local) x.of_children.insert(group);
    if (where == placement::remote) x.resize_timeout = remote_resize;
  }
  return x;
}

config::settings with_cells(const config::settings& running, const config::settings& other,
                            const std::set<std::string>& taken) {
  auto result = running;
  auto& cells = result.pools.attention.cells;
  if (cells.empty() && !taken.empty())
    cells.append(config::cell_of_whole_pool, running.pools.attention);
  for (auto [name, cell] : other.pools.attention.cells) {
    if (!taken.contains(name)) continue;
    if (!cell.kv_bytes) cell.kv_bytes = other.kv.bytes;
    if (const auto found = cells.find(name); found != cells.end())
      found->second = cell;
    else
      cells.append(name, cell);
  }
  return result;
}

} // namespace lamella::actors
