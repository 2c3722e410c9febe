#include "actors/membership/membership_state.hpp"

#include <algorithm>

namespace lamella::actors {

std::set<scheduler::seat> ready_seats(const membership_state& st) {
  std::set<scheduler::seat> ready;
  for (const auto& [where, m] : st.members)
    if (m.handle && m.trusted) ready.insert(where);
  return ready;
}

std::set<scheduler::seat> membership_state::numbered_plan::workers() const {
  std::set<scheduler::seat> all{plan.replicas.begin(), plan.replicas.end()};
  all.insert(plan.shards.begin(), plan.shards.end());
  all.insert(lenders.begin(), lenders.end());
  return all;
}

uint32_t membership_state::numbered_plan::number_of(const scheduler::seat& where) const {
  const auto& list = where.role == scheduler::worker_role::attention ? plan.shards : plan.replicas;
  const auto found = std::ranges::find(list, where);
  return found == list.end() ? no_part : static_cast<uint32_t>(found - list.begin());
}

} // namespace lamella::actors
