#include "actors/membership/loss_causes.hpp"

#include <algorithm>

namespace lamella::actors {

using net::failover_cause;

failover_cause cause_of_refusal(const caf::error& reason) {
  if (reason == caf::sec::request_timeout) return failover_cause::timeout;
  if (reason == caf::sec::request_receiver_down) return failover_cause::exit;
  return reason == ec::links_failed ? failover_cause::partition : failover_cause::fault;
}

failover_cause cause_of_end(const membership_state& st, const scheduler::seat& where,
                            const caf::error& reason, caf::actor_clock::time_point now) {
  if (!reason || reason == caf::exit_reason::user_shutdown) return failover_cause::ordered;
  if (reason == ec::device_lost || reason == ec::actor_failed) return failover_cause::fault;
  const auto& c = st.config;
  if (c.dead.count() == 0 || c.poll_interval.count() == 0) return failover_cause::exit;
  // Whoever lives answers each look.
  const auto heard = st.reports.last_heard(where);
  const bool silent = heard && now - *heard >= std::max(c.dead, c.poll_interval);
  return silent ? failover_cause::timeout : failover_cause::exit;
}

} // namespace lamella::actors
