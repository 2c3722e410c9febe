/// Which sequences change their table so that all tables have about as much KV.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace lamella::scheduler {

/// Sequences that share slots, and so have to stay together.
struct kv_group {
  uint32_t table = 0; ///< where they are
  uint32_t slots = 0; ///< that they hold together
};

/// The share of the mean by which tables may differ.
constexpr double balance_tolerance = 0.1;

/// The table of each group among `tables` tables of `table_slots` slots, such that the fullest and
/// the emptiest differ by at most a tenth of the mean, or as little as whole groups allow. Few
/// groups move, each at most once: from the fullest to the emptiest, the largest that does not turn
/// them round. Cost: O(groups * (groups + tables)).
inline std::vector<uint32_t> balanced(const std::vector<kv_group>& groups, uint32_t tables,
                                      uint32_t table_slots) {
  std::vector<uint64_t> load(tables);
  std::vector<uint32_t> to;
  uint64_t total = 0;
  for (const auto& x : groups) {
    to.push_back(x.table);
    load[x.table] += x.slots;
    total += x.slots;
  }
  const auto mean = static_cast<double>(total) / std::max(1u, tables);
  while (true) {
    const auto [least, most] = std::ranges::minmax_element(load);
    const auto gap = *most - *least;
    if (static_cast<double>(gap) <= balance_tolerance * mean) return to;
    const auto from = static_cast<uint32_t>(most - load.begin());
    const auto into = static_cast<uint32_t>(least - load.begin());
    const kv_group* best = nullptr;
    for (const auto& x : groups) {
      const auto i = static_cast<size_t>(&x - groups.data());
      if (x.table != from || to[i] != from || x.slots >= gap) continue;
      if (*least + x.slots > table_slots) continue;
      // Half of the gap at best: more turns them round, less leaves some of it.
      const auto left = [&](const kv_group& y) {
        return gap > 2 * uint64_t{y.slots} ? gap - 2 * uint64_t{y.slots}
                                           : 2 * uint64_t{y.slots} - gap;
      };
      if (best == nullptr || left(x) < left(*best)) best = &x;
    }
    if (best == nullptr || best->slots == 0) return to;
    to[static_cast<size_t>(best - groups.data())] = into;
    load[from] -= best->slots;
    load[into] += best->slots;
  }
}

} // namespace lamella::scheduler
