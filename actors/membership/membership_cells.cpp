#include "actors/membership/membership_cells.hpp"

#include "actors/membership/cell_roster.hpp"
#include "actors/membership/pool_parts.hpp"

#include <algorithm>

namespace lamella::actors {

namespace {

/// Of a pool without cells the one that it is.
pool_sizes by_cells(pool_sizes x) {
  if (x.cells.empty()) x.cells = {x.attention};
  return x;
}

std::vector<std::string> seats_before(const membership_state& st) {
  const auto& seats = st.config.shape.cell_seats;
  return seats.empty() ? std::vector<std::string>(by_cells(st.wanted).cells.size()) : seats;
}

std::string why_not(const membership_state& st, const cell_roster& x) {
  if (!st.was_open) return not_started;
  if (st.changes->current) return other_change + (": " + text_of(*st.changes->current));
  if (st.config.cells.empty() && st.config.pool.layout.tables() != 1)
    return "the pool is cut by requests: only one that is cut by heads becomes a cell";
  const auto in_force = by_cells(scheduler::sizes_of(st.config.shape));
  const auto wanted = by_cells(st.wanted);
  if (x.names.size() < wanted.cells.size()
      || !std::equal(st.config.cells.begin(), st.config.cells.end(), x.names.begin()))
    return "the service has other cells";
  const auto seats = seats_before(st);
  for (uint32_t i = 0; i < wanted.cells.size(); ++i) {
    if (in_force.cells[i] == 0 && wanted.cells[i] == 0) continue;
    if (x.taken.contains(i))
      return "the cell '" + x.names[i]
             + "' has members: scale it to 0 before it gets another device, placement, parity, "
               "spares or threads";
    if (seats.at(i) != x.seats.at(i))
      return "the workers of the cell '" + x.names[i] + "' sit on the seats of '" + seats.at(i)
             + "', which would become others: give the new settings to a cell of another name";
  }
  return {};
}

/// The partitions and the KV of some cells as configured.
pool_sizes with_cells(pool_sizes x, const cell_roster& roster) {
  x = by_cells(std::move(x));
  x.cells.resize(roster.names.size());
  for (const auto cell : roster.taken) {
    x = scheduler::with_cut(std::move(x), cell, scheduler::is_by_requests(roster.configured, cell));
    x = scheduler::with_kv_bytes(std::move(x), cell,
                                 scheduler::kv_bytes_of(roster.configured, cell));
  }
  return x;
}

/// The shape of an epoch that knows of the cells.
void extend(scheduler::epoch_shape& shape, const cell_roster& roster) {
  auto sizes = with_cells(scheduler::sizes_of(shape), roster);
  shape.cells = std::move(sizes.cells);
  shape.by_requests = std::move(sizes.by_requests);
  shape.kv_bytes = std::move(sizes.kv_bytes);
  shape.cell_seats = roster.seats;
}

} // namespace

caf::result<bool> on_cells(membership_state& st, const cell_roster& x) {
  if (const auto why = why_not(st, x); !why.empty())
    return caf::make_error(ec::resize_refused, why);
  if (!x.take()) return caf::make_error(ec::resize_refused, "nobody waits for the cells any more");
  auto& c = st.config;
  if (c.cells.empty()) st.changes->ended.erase("attention"); // of a pool that was one
  extend(c.shape, x);
  extend(st.newest.design.shape, x);
  if (st.before) extend(st.before->design.shape, x);
  if (st.current) extend(st.current->what.design.shape, x);
  st.wanted = with_cells(st.wanted, x);
  c.cells = x.names;
  for (const auto& [group, seats] : x.extra_seats) st.extra_seats[group] = seats;
  c.of_children = x.of_children;
  c.resize_timeout = std::max(c.resize_timeout, x.resize_timeout);
  return true;
}

} // namespace lamella::actors
