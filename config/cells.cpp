#include "config/cells.hpp"

#include "config/options.hpp"

#include <algorithm>

namespace lamella::config {

void check_members_between(const std::string& what, const std::string& key, const pool_settings& p,
                           std::vector<rule_violation>& found) {
  const auto n = [](uint32_t x) { return std::to_string(x); };
  if (p.autoscaled() && p.least > p.most) {
    found.push_back({{key + ".min", key + ".max"},
                     "min " + n(p.least) + " is more than max " + n(p.most),
                     "raise max or lower min"});
    return;
  }
  const auto begins = "the " + what + " begins with " + n(p.members) + " members, ";
  if (p.members < p.least)
    found.push_back({{key + ".members", key + ".min"},
                     begins + "fewer than min " + n(p.least),
                     "raise members or lower min"});
  if (p.autoscaled() && p.members > p.most)
    found.push_back({{key + ".members", key + ".max"},
                     begins + "more than max " + n(p.most),
                     "lower members or raise max"});
}

namespace {

/// Sizes of one cell between which the autoscaler may choose.
void check_cell_bounds(const std::string& key, const attention_pool_settings& cell,
                       const attention_pools_settings& pool, std::vector<rule_violation>& found) {
  if (cell.least == 0 && cell.most == 0) return;
  if (!pool.autoscaled())
    found.push_back({{key + ".min", key + ".max", "pools.attention.max"},
                     "min and max of a cell have no effect without a max of the pool",
                     "set pools.attention.max, the members that all cells may have together"});
  check_members_between("cell", key, cell, found);
}

constexpr const char* live_keys[] = {"pools.attention.members", "pools.attention.partition",
                                     "pools.attention.kv_bytes", "pools.attention.min",
                                     "pools.attention.max"};

/// Whether two cells are built alike: in all but what is live.
bool alike(const attention_pool_settings& a, const attention_pool_settings& b) {
  return a.placement == b.placement && a.device == b.device && a.threads == b.threads
         && a.spares == b.spares && a.parity == b.parity;
}

/// Whether there are seats of the service's own process; prompts on the replicas need none.
bool has_own_seats(const pools_settings& pools) {
  constexpr auto here = placement::in_process;
  return pools.model.placement == here || pools.attention.any(here)
         || (pools.prefill.has_seats() && pools.prefill.placement == here);
}

/// Whether a running service can have that cell beside those in force, or in place of one of them
/// that has no members: a process that opened no control port, or started no worker processes,
/// cannot begin to, and frames are made for pools with parity, or without.
bool has_place(const settings& in_force, const attention_pool_settings& cell) {
  const auto& pools = in_force.pools;
  if (cell.parity && !pools.attention.any_parity()) return false;
  switch (cell.placement) {
  case placement::in_process:
    return has_own_seats(pools);
  case placement::local:
    return pools.any(placement::local);
  case placement::remote:
    break;
  }
  return pools.distributed();
}

} // namespace

std::vector<std::string> take_cells(const settings& in_force, settings& changed,
                                    const attention_pools_settings& wanted) {
  auto& cells = changed.pools.attention.cells;
  std::vector<std::string> taken;
  const auto can = [&](const attention_pool_settings& x) { return has_place(in_force, x); };
  if (wanted.cells.empty()) return taken;
  if (cells.empty()) {
    const auto& whole = in_force.pools.attention;
    if (whole.partition != partition::heads
        || !std::ranges::all_of(wanted.cells, [&](const auto& x) { return can(x.second); }))
      return taken;
    cells.append(cell_of_whole_pool, whole);
    cells.at(cell_of_whole_pool).least = cells.at(cell_of_whole_pool).most = 0;
  }
  const bool with_parity = in_force.pools.attention.any_parity();
  for (auto& [name, cell] : cells) {
    const auto before = cell;
    const auto now = wanted.cells.find(name);
    if (now == wanted.cells.end()) {
      cell.members = cell.least = cell.most = 0;
    } else if (cell.members == 0 && !alike(cell, now->second) && can(now->second)) {
      cell = now->second;
      if (changed.pools.attention.any_parity() == with_parity)
        taken.push_back(name);
      else
        cell = before; // the last parity of the pool, as has_place() has it for the first
    } else {
      for (const auto* key : live_keys)
        set_in_cell(*find_option(key), cell, get_in_cell(*find_option(key), now->second));
    }
  }
  for (const auto& [name, cell] : wanted.cells)
    if (!cells.contains(name) && can(cell)) {
      cells.append(name, cell);
      taken.push_back(name);
    }
  if (taken.empty() && in_force.pools.attention.cells.empty()) cells.clear();
  return taken;
}

void check_cells(const attention_pools_settings& pool, std::vector<rule_violation>& found) {
  const std::string pools = "pools.attention.";
  if (pool.all_members() == 0)
    found.push_back(
        {{pools + "members"},
         "an attention pool needs at least one member",
         "give " + std::string{pool.cells.empty() ? "it" : "one of its cells"} + " 1 or more"});
  if (pool.cells.empty()) return;
  if (pool.cells.size() > cells_most)
    found.push_back({{pools + "cells"},
                     "there are " + std::to_string(pool.cells.size()) + " cells, more than the "
                         + std::to_string(cells_most)
                         + " that a pool can have; those that a reload took away count until a "
                           "restart",
                     "use fewer, larger cells"});
  if (pool.autoscaled() && pool.any(placement::remote))
    found.push_back(
        {{pools + "max", pools + "cells"},
         "a pool with cells that follows workers of other hosts is not available in this version",
         "set " + pools + "max to its default, or give up " + pools + "cells"});
  const bool on_cuda = is_cuda(pool.cells.begin()->second.device);
  for (const auto& [name, cell] : pool.cells) {
    if (is_cuda(cell.device) != on_cuda)
      found.push_back(
          {{pools + "cells." + name + ".device"},
           "a sequence may move to any cell, but the kernels of CUDA devices and of the "
           "host round differently",
           "give all cells a CUDA device, or none"});
    check_cell_bounds(pools + "cells." + name, cell, pool, found);
  }
}

} // namespace lamella::config
