#include "config/reload.hpp"

#include "config/cells.hpp"
#include "config/options.hpp"

#include <algorithm>

namespace lamella::config {

namespace {

/// Prefill workers without seats of their own are streams of the replicas, which are made at the
/// start. A cell that is cut otherwise gets new slot tables beside its own; a pool without cells
/// has one numbering for all.
bool is_live(const option& x, const settings& in_force) {
  if (x.key == "pools.prefill.members" && !in_force.pools.prefill.has_seats()) return false;
  if (x.key == "pools.prefill.kv_bytes" && !in_force.pools.prefill_owns_kv()) return false;
  if (x.key == "pools.attention.partition" && in_force.pools.attention.cells.empty()) return false;
  return x.when == reload::live;
}

/// Whether a new cell has nothing but what the options around the cells, or none, give it.
bool is_inherited(const option& x, const attention_pool_settings& cell,
                  const attention_pool_settings& around) {
  if (x.key == "pools.attention.members") return false;
  if (x.key == "pools.attention.min") return cell.least == 0;
  if (x.key == "pools.attention.max") return cell.most == 0;
  return get_in_cell(x, cell) == get_in_cell(x, around);
}

/// Says of each key of a cell whether it has its new value. Of a new cell only the keys of its own
/// count. One that is wanted no more loses its members, and nothing else.
void tell_of_cells(live_change& change, const settings& in_force, const settings& wanted) {
  const auto& before = in_force.pools.attention.cells;
  const auto& now = change.value.pools.attention.cells;
  const auto& wished = wanted.pools.attention.cells;
  if (now.empty() || wished.empty()) {
    for (auto& x : change.changes) x.needs_restart |= split_cell_key(x.key).has_value();
    return;
  }
  std::erase_if(change.changes, [&](difference& x) {
    const auto key = split_cell_key(x.key);
    if (!key) return false;
    const auto has = now.find(key->cell), wants = wished.find(key->cell);
    const auto& of = *find_option(key->key);
    if (wants == wished.end()) {
      x.needs_restart = false;
      x.after = std::string(1, '0'); // g++ 12 warns of the assignment of a literal
      return key->key != "pools.attention.members" || before.at(key->cell).members == 0;
    }
    if (!before.contains(key->cell) && is_inherited(of, wants->second, wanted.pools.attention))
      return true;
    x.needs_restart =
        has == now.end() || get_in_cell(of, has->second) != get_in_cell(of, wants->second);
    return false;
  });
}

/// A pool with cells has no members or memory but theirs, and one without is not changed by what
/// cells would be.
void tell_of_whole_pool(live_change& change, const settings& in_force, const settings& wanted) {
  auto& now = change.value.pools.attention;
  const bool had = !in_force.pools.attention.cells.empty(), has = !now.cells.empty();
  const bool wants = !wanted.pools.attention.cells.empty();
  if (had != has) { // it has become cells
    std::erase_if(change.changes,
                  [](const difference& x) { return x.key == "pools.attention.members"; });
    return;
  }
  if (has == wants) return;
  for (auto& x : change.changes) {
    const auto* of = find_option(x.key);
    if (of == nullptr || !x.key.starts_with("pools.attention.") || split_cell_key(x.key)) continue;
    of->set(change.value, of->get(in_force));
    x.needs_restart = true;
  }
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
  result.cells = take_cells(in_force, result.value, wanted.pools.attention);
  tell_of_cells(result, in_force, wanted);
  tell_of_whole_pool(result, in_force, wanted);
  const auto& wished = wanted.pools.attention.cells;
  for (const auto& [name, cell] : result.value.pools.attention.cells)
    if (!wished.empty() && !wished.contains(name)) result.gone.push_back(name);
  result.violations = check(result.value);
  return result;
}

} // namespace lamella::config
