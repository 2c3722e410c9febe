#include "config/reload.hpp"

#include "config/options.hpp"

#include <algorithm>

namespace lamella::config {

namespace {

constexpr const char* live_in_cells[] = {"pools.attention.members", "pools.attention.partition",
                                         "pools.attention.kv_bytes", "pools.attention.min",
                                         "pools.attention.max"};

/// Prefill workers without seats of their own are streams of the replicas, which are made at the
/// start. A cell that is cut otherwise gets new slot tables beside its own; a pool without cells
/// has one numbering for all.
bool is_live(const option& x, const settings& in_force) {
  if (x.key == "pools.prefill.members" && !in_force.pools.prefill.has_seats()) return false;
  if (x.key == "pools.prefill.kv_bytes" && !in_force.pools.prefill_owns_kv()) return false;
  if (x.key == "pools.attention.partition" && in_force.pools.attention.cells.empty()) return false;
  return x.when == reload::live;
}

} // namespace

live_change take_live(const settings& in_force, const settings& wanted) {
  live_change result;
  result.value = in_force;
  result.changes = diff(in_force, wanted);
  for (const auto& x : options()) {
    if (is_live(x, in_force)) {
      x.set(result.value, x.get(wanted));
      continue;
    }
    const auto changed = std::ranges::find(result.changes, x.key, &difference::key);
    if (changed != result.changes.end()) changed->needs_restart = true;
  }
  auto& cells = result.value.pools.attention.cells;
  const auto& wished = wanted.pools.attention.cells;
  for (auto& [name, cell] : cells)
    if (const auto now = wished.find(name); now != wished.end())
      for (const auto* key : live_in_cells)
        set_in_cell(*find_option(key), cell, get_in_cell(*find_option(key), now->second));
  for (auto& x : result.changes) // one that comes or goes is made at the start
    if (const auto key = split_cell_key(x.key))
      x.needs_restart |= !cells.contains(key->cell) || !wished.contains(key->cell);
  result.violations = check(result.value);
  return result;
}

} // namespace lamella::config
