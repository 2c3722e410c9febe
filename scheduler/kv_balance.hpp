/// Which sequences change their table so that all tables are about equally full.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

namespace lamella::scheduler {

/// Sequences that share slots, and so have to stay together.
struct kv_group {
  uint32_t table = 0; ///< where they are
  uint32_t slots = 0; ///< that they hold together
};

/// The share of the mean by which tables may differ, and of a table's slots by which one may be
/// fuller than another before sequences move.
constexpr double balance_tolerance = 0.1;

/// The tables of a pool and what is in them.
struct kv_loads {
  std::vector<uint32_t> slots; ///< of each table; 0: it goes, or is not in use
  std::vector<uint64_t> used;

  double share(uint32_t table) const {
    return static_cast<double>(used[table]) / std::max(1u, slots[table]);
  }
  bool fits(uint32_t table, uint64_t more) const { return used[table] + more <= slots[table]; }
};

/// The share in use of the fullest table, less that of the emptiest; of tables in use.
inline double spread_of(const kv_loads& x) {
  double least = 1, most = 0;
  for (uint32_t t = 0; t < x.slots.size(); ++t)
    if (x.slots[t] > 0) least = std::min(least, x.share(t)), most = std::max(most, x.share(t));
  return std::max(0.0, most - least);
}

/// The table with the smallest share in use that has room for a group; of tables in use the
/// emptiest where none has. There has to be one in use.
inline uint32_t emptiest_for(const kv_loads& x, uint64_t more) {
  uint32_t best = 0;
  const auto better = [&](uint32_t a, uint32_t than) {
    if (x.slots[a] == 0 || x.slots[than] == 0) return x.slots[a] > x.slots[than];
    if (x.fits(a, more) != x.fits(than, more)) return x.fits(a, more);
    return x.share(a) < x.share(than);
  };
  for (uint32_t t = 1; t < x.slots.size(); ++t)
    if (better(t, best)) best = t;
  return best;
}

/// As emptiest_for(), but of the tables `near` the replica that will attend the emptiest one that
/// has room, unless it would then be so much fuller than the emptiest of all that sequences might
/// move back. `group`: slots that the group takes of `more`. O(tables * near).
inline uint32_t nearest_for(const kv_loads& x, uint64_t more, uint64_t group,
                            const std::vector<uint32_t>& near) {
  const auto emptiest = emptiest_for(x, more);
  std::optional<uint32_t> best;
  for (const auto t : near)
    if (t < x.slots.size() && x.slots[t] > 0 && x.fits(t, more)
        && (!best || x.share(t) < x.share(*best)))
      best = t;
  if (!best) return emptiest;
  const auto then = x.share(*best) + static_cast<double>(group) / x.slots[*best];
  return then <= x.share(emptiest) + balance_tolerance ? *best : emptiest;
}

/// Groups of tables that go, the largest first, each to the emptiest table that has room.
inline void leave_tables(const std::vector<kv_group>& groups, std::vector<uint32_t>& to,
                         kv_loads& x) {
  std::vector<size_t> order;
  for (size_t i = 0; i < groups.size(); ++i)
    if (groups[i].table >= x.slots.size() || x.slots[groups[i].table] == 0) order.push_back(i);
  std::ranges::stable_sort(order,
                           [&](size_t a, size_t b) { return groups[a].slots > groups[b].slots; });
  for (const auto i : order) {
    to[i] = emptiest_for(x, groups[i].slots);
    x.used[to[i]] += groups[i].slots;
  }
}

/// The group whose move from the fullest to the emptiest table brings these closest together, of
/// those that do not turn them round; the number of groups: none.
inline size_t best_to_move(const std::vector<kv_group>& groups, const std::vector<uint32_t>& to,
                           const kv_loads& x, uint32_t most, uint32_t least) {
  const auto gap = x.share(most) - x.share(least);
  const auto each = 1.0 / x.slots[most] + 1.0 / x.slots[least]; // what a slot changes
  auto best = groups.size();
  double left = 0;
  for (size_t i = 0; i < groups.size(); ++i) {
    if (groups[i].table != most || to[i] != most || groups[i].slots == 0) continue;
    const auto change = groups[i].slots * each;
    if (change >= 2 * gap * (1 - 1e-9) || !x.fits(least, groups[i].slots)) continue;
    // All of the gap at best: more turns them round, less leaves some of it.
    const auto rest = gap > change ? gap - change : change - gap;
    if (best == groups.size() || rest < left) best = i, left = rest;
  }
  return best;
}

/// The table of each group among tables of so many slots, of which those with none go: such that
/// the shares in use of the fullest and the emptiest differ by at most a tenth of their mean, or as
/// little as whole groups allow. Few groups move, each at most once: those of tables that go, then
/// from the fullest to the emptiest, the largest that does not turn them round. `level`: whether
/// tables that stay are made equal. Cost: O(groups * (groups + tables)).
inline std::vector<uint32_t> balanced(const std::vector<kv_group>& groups,
                                      const std::vector<uint32_t>& slots, bool level = true) {
  kv_loads x{slots, std::vector<uint64_t>(slots.size())};
  std::vector<uint32_t> to;
  for (const auto& group : groups) {
    to.push_back(group.table);
    if (group.table < slots.size() && slots[group.table] > 0) x.used[group.table] += group.slots;
  }
  leave_tables(groups, to, x);
  while (level) {
    uint64_t used = 0, all = 0;
    auto most = static_cast<uint32_t>(slots.size()), least = most;
    for (uint32_t t = 0; t < slots.size(); ++t) {
      if (slots[t] == 0) continue;
      used += x.used[t], all += slots[t];
      if (most == slots.size() || x.share(t) > x.share(most)) most = t;
      if (least == slots.size() || x.share(t) < x.share(least)) least = t;
    }
    if (most == least) break;
    const auto mean = static_cast<double>(used) / static_cast<double>(all);
    if (x.share(most) - x.share(least) <= balance_tolerance * mean) break;
    const auto best = best_to_move(groups, to, x, most, least);
    if (best == groups.size()) break;
    to[best] = least;
    x.used[most] -= groups[best].slots;
    x.used[least] += groups[best].slots;
  }
  return to;
}

} // namespace lamella::scheduler
