#include "actors/node/roster.hpp"

#include "actors/machine/seat_groups.hpp"
#include "actors/machine/sizing.hpp"
#include "config/cells.hpp"

namespace lamella::actors {

using config::placement;
using scheduler::worker_role;

cell_roster roster_of(const config::settings& options, const std::set<std::string>& taken) {
  cell_roster x;
  x.seats = cell_seats(options);
  x.configured.cells = cell_sizes(options);
  x.configured.by_requests = cells_by_requests(options);
  x.configured.kv_bytes = kv_bytes_of_cells(options);
  for (const auto& [name, cell] : options.pools.attention.cells) {
    if (taken.contains(name)) x.taken.insert(static_cast<uint32_t>(x.names.size()));
    const scheduler::seat_group group{worker_role::attention, x.seats[x.names.size()]};
    const auto spares = spares_of(options, group);
    x.extra_seats.try_emplace(group, spares).first->second += cell.parity ? 1 : 0;
    x.names.push_back(name);
  }
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
