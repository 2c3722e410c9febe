/// Which slot tables are near which replicas: on the same host.
#pragma once

#include "scheduler/kv_layout.hpp"

#include <algorithm>
#include <string>
#include <vector>

namespace lamella::scheduler {

/// The tables whose members are all on the one host of these replicas, ascending; none where the
/// replicas are on several hosts. `members`: hosts of the members by number; those behind the
/// layout's are ignored. O(members).
inline std::vector<uint32_t> near_tables(const kv_layout& layout,
                                         const std::vector<std::string>& members,
                                         const std::vector<std::string>& replicas) {
  std::vector<uint32_t> near;
  if (replicas.empty()) return near;
  const auto here = [&](const std::string& host) { return host == replicas.front(); };
  if (!std::ranges::all_of(replicas, here)) return near;
  for (uint32_t t = 0; t < layout.tables(); ++t) {
    const auto first = members.begin() + layout.first_of(t);
    if (layout.in_use(t) && std::all_of(first, first + layout.cells[t].members, here))
      near.push_back(t);
  }
  return near;
}

/// Whether nearness leaves a choice: some of the tables in use are near a batch and some are not.
/// `near`: of each batch.
inline bool has_near_and_far(const kv_layout& layout,
                             const std::vector<std::vector<uint32_t>>& near) {
  uint32_t in_use = 0;
  for (uint32_t t = 0; t < layout.tables(); ++t) in_use += layout.in_use(t) ? 1 : 0;
  return std::ranges::any_of(near, [&](const auto& x) { return !x.empty() && x.size() < in_use; });
}

} // namespace lamella::scheduler
