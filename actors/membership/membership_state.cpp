#include "actors/membership/membership_state.hpp"

namespace lamella::actors {

std::set<scheduler::seat> ready_seats(const membership_state& st) {
  std::set<scheduler::seat> ready;
  for (const auto& [where, m] : st.members)
    if (m.handle && m.trusted) ready.insert(where);
  return ready;
}

} // namespace lamella::actors
