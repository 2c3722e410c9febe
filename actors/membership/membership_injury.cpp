#include "actors/membership/membership_injury.hpp"

#include "actors/protocol/workers.hpp"

#include <spdlog/spdlog.h>

namespace lamella::actors {

using membership_ptr = membership_self::stateful_pointer<membership_state>;
using member = membership_state::member;

namespace {

/// The seats of worker processes that are there, in words.
std::string injurable(const membership_state& st) {
  std::string seats;
  for (const auto& [where, m] : st.members)
    if (m.handle && !m.info.here) seats += (seats.empty() ? "" : ", ") + m.info.seat;
  return seats.empty() ? "none" : seats;
}

} // namespace

caf::result<std::string> on_injure(membership_ptr self, const injure& x) {
  const auto& st = self->state;
  std::vector<const member*> candidates;
  for (const auto& [where, m] : st.members)
    if (m.handle && !m.info.here
        && (x.target.empty() || x.target == m.info.seat || x.target == m.info.role
            || x.target == m.info.role + "/" + m.info.name))
      candidates.push_back(&m);
  if (candidates.empty())
    return caf::make_error(ec::nobody_there, "no worker process for '" + x.target
                                                 + "'; choose one of " + injurable(st));
  const auto& victim = *candidates[x.chance % candidates.size()];
  spdlog::warn("fault injected what={} duration_ms={} seat={} worker={} pid={}", x.injury.what,
               x.injury.duration_ms, victim.info.seat, victim.info.name, victim.info.pid);
  self->send(victim.handle, x.injury);
  return victim.info.seat;
}

} // namespace lamella::actors
