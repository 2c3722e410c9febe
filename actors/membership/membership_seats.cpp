#include "actors/membership/membership_seats.hpp"

#include "actors/machine/sizing.hpp"
#include "actors/membership/membership_pace.hpp"
#include "actors/membership/membership_plan.hpp"
#include "actors/membership/membership_probe.hpp"
#include "actors/protocol/join.hpp"
#include "actors/shared/events.hpp"

#include <algorithm>

#include <unistd.h>

namespace lamella::actors {

namespace {

using membership_ptr = membership_self::stateful_pointer<membership_state>;
using member = membership_state::member;
using scheduler::seat;

/// The one that a child process was started in place of has ended, whether that is known or not.
/// Its successor takes its seat: who counts the processes of a host knows them by their seats.
void end_predecessor(membership_state& st, const scheduler::seat_group& group, const seat_ask& x) {
  if (!st.config.of_children.contains(group)) return;
  const auto found = st.members.find({group.role, x.preferred, group.cell});
  if (found == st.members.end() || found->second.info.name != x.name) return;
  st.lose(found->first, "its process was started again", net::failover_cause::exit);
}

/// The cells that workers can name, as a hint to one that names none; empty: there are none.
std::string cells_hint(const membership_state& st, const seat_ask& x) {
  if (!x.cell.empty() || x.role != "attention" || st.config.cells.empty()) return {};
  std::string names;
  for (const auto& cell : st.config.cells) names += (names.empty() ? "" : ", ") + cell;
  return "; a cell's own workers name it with --cell: " + names;
}

/// What a worker can join.
struct wanted_group {
  std::optional<scheduler::seat_group> group;
  std::string refusal; ///< where there is no group
};

wanted_group group_for(const membership_state& st, const seat_ask& x) {
  const auto role = scheduler::role_named(x.role);
  if (!role || st.config.seats.members(*role) == 0)
    return {{}, "this service accepts no worker processes for the pool '" + x.role + "'"};
  scheduler::seat_group group{*role};
  if (!x.cell.empty()) {
    const auto found = std::ranges::find(st.config.cells, x.cell);
    if (*role != scheduler::worker_role::attention || found == st.config.cells.end())
      return {{}, "the pool '" + x.role + "' has no cell '" + x.cell + "'"};
    const auto& seats = st.config.shape.cell_seats;
    const auto at = static_cast<size_t>(found - st.config.cells.begin());
    if (at < seats.size()) group.cell = seats[at];
  }
  return {group, {}};
}

/// The roles for want of which requests are refused: whoever waits for a lost shard goes on with
/// fewer of them soon, and so do requests that come meanwhile.
std::vector<scheduler::worker_role> lacking_roles(const membership_state& st,
                                                  const std::set<seat>& ready) {
  auto lacking = scheduler::lacking_roles(st.config.shape, ready, st.held);
  if (!lacking.empty() && st.was_open && next_plan(st, true)) lacking.clear();
  return lacking;
}

} // namespace

std::vector<seat> seats_named(const membership_state& st, const std::string& name) {
  std::vector<seat> found;
  for (const auto& [where, m] : st.members) {
    if (m.info.seat == name) return {where};
    if (m.info.name == name) found.push_back(where);
  }
  return found;
}

void changed(membership_ptr self) {
  const auto& st = self->state;
  if (!st.config.on_change) return;
  const auto ready = ready_seats(st);
  std::set<seat> slow, fenced;
  for (const auto& [where, m] : st.members) {
    if (m.info.slow) slow.insert(where);
    if (m.fenced_at) fenced.insert(where);
  }
  const auto& shape = st.config.shape;
  const auto parity = static_cast<uint32_t>(shape.parity.size());
  for (const auto role : {scheduler::worker_role::model, scheduler::worker_role::attention,
                          scheduler::worker_role::prefill})
    if (st.config.metrics && st.config.seats.members(role) > 0)
      st.config.metrics->set_pool_target(scheduler::to_string(role),
                                         scheduler::size_of(st.wanted, role));
  st.config.on_change({st.config.seats,
                       ready,
                       lacking_roles(st, ready),
                       {{scheduler::worker_role::model, shape.replicas},
                        {scheduler::worker_role::attention, shape.shards + parity},
                        {scheduler::worker_role::prefill, shape.prefill_seats}},
                       parity,
                       slow,
                       failing_seats(st),
                       fenced});
}

void watch(membership_ptr self, const caf::strong_actor_ptr& x, const member& m) {
  self->state.who[caf::actor_cast<caf::actor_addr>(x)] = {m.where, m.info.incarnation};
  self->monitor(caf::actor_cast<caf::actor_addr>(x));
}

caf::result<join_grant> on_seat(membership_ptr self, const seat_ask& x,
                                const std::function<bool(scheduler::worker_role)>& grow) {
  auto& st = self->state;
  const auto refuse = [&](const std::string& why) {
    tell(event_kind::worker_refused,
         {{"worker", x.name}, {"host", x.host}, {"pid", x.pid}, {"reason", why}});
    return caf::make_error(ec::join_refused, why);
  };
  const auto [group, refusal] = group_for(st, x);
  if (!group) return refuse(refusal);
  const auto preferred =
      x.preferred == any_seat ? std::nullopt : std::optional<uint32_t>{x.preferred};
  end_predecessor(st, *group, x);
  auto taken = st.config.seats.take(*group, preferred);
  if (!taken && grow(group->role)) taken = st.config.seats.take(*group, preferred);
  if (!taken) {
    const auto seats = std::to_string(st.config.seats.members_of(*group));
    return refuse("the pool '" + scheduler::to_string(*group) + "' is full: " + seats + " of "
                  + seats + " seats are taken" + cells_hint(st, x));
  }
  member m;
  m.where = taken->where;
  m.info.name = x.name;
  m.info.role = x.role;
  m.info.seat = scheduler::to_string(taken->where);
  m.info.state = "loading";
  m.info.incarnation = taken->incarnation;
  m.info.host = x.host;
  m.info.pid = x.pid;
  m.info.slow = std::ranges::find(st.shunned, std::pair{x.host, x.pid}) != st.shunned.end();
  if (m.info.slow) st.pace.assume_slow(m.where);
  // Containers of one host may share its name, and their processes have the same numbers.
  m.info.here = x.pid == static_cast<uint32_t>(getpid()) && x.host == host_name()
                && self->current_sender()->node() == self->home_system().node();
  watch(self, self->current_sender(), m);
  // Whoever takes a seat and never loads must not keep it.
  self->delayed_send(self, st.config.load_timeout, wake_atom_v, m.info.seat, m.info.incarnation);
  tell(event_kind::worker_joined, {{"seat", m.info.seat},
                                   {"incarnation", m.info.incarnation},
                                   {"worker", x.name},
                                   {"host", x.host},
                                   {"pid", x.pid}});
  join_grant grant{
      x.proof,           x.role,
      m.where.index,     m.info.incarnation,
      self->state.epoch, st.config.terms_of(m.where, st.config.seats.place_of(m.where))};
  if (st.config.on_worker) st.config.on_worker(m.info, false, false);
  st.reports.heard(m.where, self->clock().now());
  st.members.emplace(m.where, std::move(m));
  changed(self);
  return grant;
}

} // namespace lamella::actors
