#include "actors/membership/pool_parts.hpp"

#include "scheduler/cell_tables.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

namespace lamella::actors {

using scheduler::seat;
using scheduler::worker_role;

namespace {

/// Members of a pool at most: seats have numbers of 14 bits, and a mistyped size starts processes.
constexpr uint32_t members_max = 256;
/// Why a pool that is not changed has fewer members than it should have.
constexpr const char* waits_for_lost = "it waits for workers that were lost";

} // namespace

std::string name_of(const membership_state& st, const resized_part& x) {
  const std::string pool{scheduler::to_string(x.role)};
  return x.cell ? pool + "/" + st.config.cells.at(*x.cell) : pool;
}

uint32_t size_of(const pool_sizes& sizes, const resized_part& x) {
  return x.cell ? sizes.cells.at(*x.cell) : scheduler::size_of(sizes, x.role);
}

std::string partition_of(const pool_sizes& sizes, const resized_part& x) {
  if (!x.cell) return {};
  return scheduler::is_by_requests(sizes, *x.cell) ? "requests" : "heads";
}

uint64_t kv_bytes_of(const pool_sizes& sizes, const resized_part& x) {
  if (x.role == worker_role::prefill) return sizes.prefill_kv_bytes;
  if (x.role != worker_role::attention) return 0;
  const auto bytes = scheduler::kv_bytes_of(sizes, x.cell.value_or(0));
  if (!x.cell)
    for (size_t i = 1; i < sizes.cells.size(); ++i)
      if (scheduler::kv_bytes_of(sizes, i) != bytes) return 0;
  return bytes;
}

pool_sizes with_part(const pool_sizes& sizes, const resized_part& x, const wanted_part& wanted) {
  auto result = x.cell ? scheduler::with_cell(sizes, *x.cell, wanted.members)
                       : scheduler::with_size(sizes, x.role, wanted.members);
  if (x.cell && !wanted.partition.empty())
    result = scheduler::with_cut(result, *x.cell, wanted.partition == "requests");
  if (wanted.kv_bytes == kv_as_it_is) return result;
  if (x.role == worker_role::attention)
    return scheduler::with_kv_bytes(result, x.cell.value_or(0), wanted.kv_bytes);
  if (x.role == worker_role::prefill) result.prefill_kv_bytes = wanted.kv_bytes;
  return result;
}

pool_sizes with_wanted(const pool_sizes& sizes, const membership_state& st, const resized_part& x) {
  return with_part(sizes, x,
                   {size_of(st.wanted, x), partition_of(st.wanted, x), kv_bytes_of(st.wanted, x)});
}

std::string cells_of(const membership_state& st) {
  std::string text;
  for (const auto& cell : st.config.cells)
    text += (text.empty() ? "attention/" : ", attention/") + cell;
  return text;
}

std::optional<resized_part> part_named(const membership_state& st, const std::string& name) {
  const auto slash = name.find('/');
  const auto role = scheduler::role_named(name.substr(0, slash));
  if (!role || slash == std::string::npos)
    return role ? std::optional{resized_part{*role}} : std::nullopt;
  const auto cell = std::ranges::find(st.config.cells, name.substr(slash + 1));
  if (*role != worker_role::attention || cell == st.config.cells.end()) return std::nullopt;
  return resized_part{*role, static_cast<size_t>(cell - st.config.cells.begin())};
}

resized_part part_with(const membership_state& st, const seat& where) {
  if (where.role != worker_role::attention || st.config.cells.empty()) return {where.role};
  const bool has_left = st.before && st.newest.number_of(where) == no_part;
  const auto& epoch = has_left ? *st.before : st.newest;
  const auto table = epoch.design.pool.layout.cell_of(epoch.number_of(where));
  return {where.role, scheduler::cell_of_table(table, st.config.cells.size())};
}

wanted_part wanted_by(const membership_state& st, const resized_part& what, const pool_resize& x) {
  return {x.members == members_as_they_are ? size_of(st.wanted, what) : x.members,
          x.partition == partition_of(st.wanted, what) ? std::string{} : x.partition,
          x.kv_bytes == kv_bytes_of(st.wanted, what) ? kv_as_it_is : x.kv_bytes};
}

bool is_new(const membership_state& st, const resized_part& what, const wanted_part& x) {
  return x.members != size_of(st.wanted, what) || !x.partition.empty() || x.kv_bytes != kv_as_it_is;
}

std::string text_of(const pool_change& x) {
  const auto cut = x.to_partition.empty() ? "" : " by " + x.to_partition;
  const auto kv = x.to_kv_bytes == kv_as_it_is
                      ? ""
                      : fmt::format(" with {} bytes of KV each",
                                    x.to_kv_bytes == 0 ? "auto" : std::to_string(x.to_kv_bytes));
  return fmt::format("{} {} -> {}{}{}", x.pool, x.from, x.to, cut, kv);
}

std::string why_not(const membership_state& st, const resized_part& what,
                    const wanted_part& wanted) {
  const auto pool = name_of(st, what);
  const auto& [members, partition, kv_bytes] = wanted;
  if (!st.config.design_of) return "the pools of this service keep their sizes";
  if (st.config.seats.members(what.role) == 0)
    return fmt::format("the pool '{}' has no workers of its own", pool);
  if (!what.cell && what.role == worker_role::attention && !st.config.cells.empty())
    return "the attention pool has cells: change the size of one of " + cells_of(st);
  if (!partition.empty() && !what.cell)
    return fmt::format("'{}' is no cell: only cells change their partition while they serve", pool);
  if (!partition.empty() && partition != "heads" && partition != "requests")
    return fmt::format("partition '{}': use heads or requests", partition);
  if (kv_bytes != kv_as_it_is && what.role == worker_role::model)
    return "model replicas have no KV: 'kv_bytes' is of attention and prefill";
  if (members == 0 && !what.cell)
    return fmt::format("a pool cannot be empty: '{}' needs a member", pool);
  if (members > members_max)
    return fmt::format("{} members: a pool has at most {}", members, members_max);
  if (const auto& current = st.changes->current; current && current->pool != pool)
    return fmt::format("{}: {}", other_change, text_of(*current));
  if (!st.was_open) return not_started;
  try {
    st.config.design_of(with_part(st.wanted, what, wanted));
  } catch (const std::invalid_argument& e) {
    return e.what();
  }
  return {};
}

pool_change as_wanted(const membership_state& st, const resized_part& what) {
  const auto now = size_of(scheduler::sizes_of(st.config.shape), what);
  const auto wanted = size_of(st.wanted, what);
  pool_change x{name_of(st, what), now, wanted, "done", {}};
  if (now != wanted) x.state = "short", x.reason = waits_for_lost;
  x.partition = partition_of(st.wanted, what);
  x.kv_bytes = kv_bytes_of(st.wanted, what);
  return x;
}

std::vector<pool_change> changes_of(const membership_state& st) {
  std::vector<pool_change> result;
  const auto sizes = scheduler::sizes_of(st.config.shape);
  const auto tell_of = [&](const resized_part& x) {
    const auto name = name_of(st, x);
    const auto now = size_of(sizes, x);
    const auto wanted = size_of(st.wanted, x);
    if (st.changes->current && st.changes->current->pool == name)
      result.push_back(*st.changes->current);
    else if (wanted != now && st.changes->current
             && st.changes->current->pool.starts_with(name + "/"))
      result.push_back({name, now, wanted, "under way", "cell " + st.changes->current->pool});
    else if (wanted != now)
      result.push_back({name, now, wanted, "short", waits_for_lost});
    else if (const auto last = st.changes->ended.find(name); last != st.changes->ended.end())
      result.push_back(last->second);
    else
      result.push_back({name, now, now, "none", {}});
    result.back().partition = partition_of(sizes, x); // as it is
    result.back().kv_bytes = kv_bytes_of(sizes, x);
  };
  tell_of({worker_role::model});
  tell_of({worker_role::attention});
  for (size_t i = 0; i < st.config.cells.size(); ++i) tell_of({worker_role::attention, i});
  if (const auto n = st.config.prefill_on_replicas; n > 0)
    result.push_back({std::string{scheduler::to_string(worker_role::prefill)}, n, n, "none",
                      "on model replicas"});
  else
    tell_of({worker_role::prefill});
  return result;
}

} // namespace lamella::actors
