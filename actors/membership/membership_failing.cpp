#include "actors/membership/membership_failing.hpp"

#include "actors/membership/membership_plan.hpp"
#include "actors/protocol/workers.hpp"

#include <fmt/format.h>

namespace lamella::actors {

void note_failing(membership_state& st, const seat_failing& x) {
  const auto role = scheduler::role_named(x.role);
  const auto found = role ? st.config.seats.find(*role, x.index) : std::nullopt;
  if (!found) return;
  const auto& where = *found;
  auto why = fmt::format("{}, {} times in a row", x.how, x.faults);
  if (const auto said = st.refusals.extract(where)) why += ": " + said.mapped();
  st.failing[where] = std::move(why);
  // Where it has served, it waits for processes that are tried for ever; but what is broken in its
  // own process may be whole in another one.
  if (st.was_open && !x.here) return;
  if (!st.config.on_hopeless || !is_hopeless(st)) return;
  std::string all;
  for (const auto& [each, reason] : st.failing)
    all += (all.empty() ? "" : "; ") + scheduler::to_string(each) + ": " + reason;
  st.config.on_hopeless(all);
}

void note_serving(membership_state& st, const membership_state::member& m) {
  st.failing.erase(m.where);
  st.refusals.erase(m.where);
  if (st.config.on_serving) st.config.on_serving(m.info);
}

} // namespace lamella::actors
