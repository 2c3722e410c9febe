#include "actors/membership/membership.hpp"

#include "actors/machine/sizing.hpp"
#include "actors/membership/cell_roster.hpp"
#include "actors/membership/loss_causes.hpp"
#include "actors/membership/membership_cells.hpp"
#include "actors/membership/membership_epochs.hpp"
#include "actors/membership/membership_failing.hpp"
#include "actors/membership/membership_injury.hpp"
#include "actors/membership/membership_pace.hpp"
#include "actors/membership/membership_plan.hpp"
#include "actors/membership/membership_probe.hpp"
#include "actors/membership/membership_reach.hpp"
#include "actors/membership/membership_refusal.hpp"
#include "actors/membership/membership_scale.hpp"
#include "actors/membership/membership_seats.hpp"
#include "actors/membership/membership_status.hpp"
#include "actors/membership/pool_parts.hpp"
#include "actors/protocol/epochs.hpp"
#include "actors/protocol/join.hpp"
#include "actors/protocol/status.hpp"
#include "actors/protocol/workers.hpp"
#include "actors/shared/events.hpp"
#include "actors/shared/exceptions.hpp"
#include "actors/shared/explain.hpp"
#include "net/metrics/failover_words.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>

namespace lamella::actors {

namespace {

using scheduler::seat;
using scheduler::worker_role;

/// Processes that were slow and are remembered; one is replaced in a minute.
constexpr size_t shunned_max = 256;

/// In an epoch that serves, served last, or is being opened on its own.
bool has_work(const membership_state& st, const seat& where) {
  return has_part(st.newest.plan, where) || (st.before && has_part(st.before->plan, where));
}

/// The streams that a worker with a part in an epoch serves: a shard all, a replica its own.
std::vector<scheduler::stream_id> streams_of(const scheduler::epoch_plan& plan, const seat& where) {
  const auto found = std::find(plan.replicas.begin(), plan.replicas.end(), where);
  std::vector<scheduler::stream_id> streams;
  for (const auto& x : plan.streams)
    if ((found == plan.replicas.end() || x.replica == found - plan.replicas.begin())
        && (streams.empty() || streams.back() != x.stream))
      streams.push_back(x.stream);
  return streams;
}

/// The epoch whose work a worker did: while the pipeline moves, most requests run in the one
/// before.
const membership_state::numbered_plan& epoch_of_work(const membership_state& st,
                                                     const seat& where) {
  return st.before && has_part(st.before->plan, where) ? *st.before : st.newest;
}

void lose(membership_ptr self, const seat& where, const std::string& reason,
          net::failover_cause cause, bool own_fault = false);
reach_verdicts verdicts_of(membership_ptr self);

/// A worker is gone or must go: its seat is free and the epoch it was part of is over.
void lose(membership_ptr self, const seat& where, const std::string& reason,
          net::failover_cause cause, bool own_fault) {
  auto& st = self->state;
  auto node = st.members.extract(where);
  if (!node) return;
  auto& gone = node.mapped();
  st.config.seats.give_back(where, gone.info.incarnation);
  st.pace.forget(where);
  st.draining.erase(where); // it was asked of this worker, and not of its successor in the seat
  stop_watching(self, gone);
  gone.info.trouble = reason;
  const bool ordered = cause == net::failover_cause::ordered;
  tell(ordered ? event_kind::worker_left : event_kind::worker_lost,
       {{"seat", gone.info.seat},
        {"incarnation", gone.info.incarnation},
        {"worker", gone.info.name},
        {"pid", gone.info.pid},
        {"cause", net::failover_words[static_cast<size_t>(cause)]},
        {"reason", reason}});
  if (gone.handle)
    self->send(gone.handle, worker_leave{reason, gone.for_good});
  else
    st.refusals[where] = reason;
  st.memory.erase(where);
  const bool had_part = has_work(st, where);
  if (gone.handle && had_part) {
    ++st.losses;
    if (st.config.metrics) st.config.metrics->failover(gone.info.role, cause);
  }
  // Whoever ends while it loads had nothing in flight, also where its predecessor had a part.
  if (st.config.on_part_lost && had_part && gone.handle) {
    const auto& served = epoch_of_work(st, where);
    st.config.on_part_lost(gone.info, served.epoch, streams_of(served.plan, where), own_fault);
  }
  if (st.config.on_worker) st.config.on_worker(gone.info, true, own_fault);
  if (had_part) {
    // Before the pipeline ends: in between /ready would say that it is being rebuilt, although a
    // role may lack its worker.
    changed(self);
    close_epochs(self, gone.info, " lost: " + reason);
    try_open(self); // a handed-out one is asked for again, one under way is not
  } else if (st.current && st.current->what.has(where)) {
    abort_opening(self); // a newcomer's loss does not end what serves without it
    try_open(self);
  }
  // Without a part in it, a spare does not end an epoch.
  changed(self);
}

/// The kernel reports a stopped process: no need to wait until its connection closes.
void on_stopped(membership_ptr self, uint32_t pid) {
  for (const auto& [where, m] : self->state.members)
    if (m.info.pid == pid && m.info.host == host_name()) {
      lose(self, where, "its process is stopped", net::failover_cause::timeout);
      return;
    }
}

void on_down(membership_ptr self, const caf::down_msg& down) {
  auto& st = self->state;
  auto node = st.who.extract(down.source);
  if (!node) return;
  const auto [where, incarnation] = node.mapped();
  const auto found = st.members.find(where);
  if (found == st.members.end() || found->second.info.incarnation != incarnation) return;
  const bool own_fault = down.reason == ec::device_lost || down.reason == ec::actor_failed;
  lose(self, where, down.reason ? explain(self->system(), down.reason) : "it left",
       cause_of_end(st, where, down.reason, self->clock().now()), own_fault);
}

caf::result<bool> on_facts(membership_ptr self, const worker_facts& x) {
  auto& st = self->state;
  const auto known = st.who.find(caf::actor_cast<caf::actor_addr>(self->current_sender()));
  const auto found =
      known == st.who.end() ? st.members.end() : st.members.find(known->second.first);
  if (found == st.members.end() || found->second.info.incarnation != known->second.second
      || found->second.handle || (!x.handle && x.refusal.empty()))
    return caf::make_error(ec::join_refused, "the seat is not (or no longer) granted");
  auto& m = found->second;
  if (const auto why = refuse(st, m.where.role, x)) {
    lose(self, m.where, *why, net::failover_cause::fault);
    return caf::make_error(ec::join_refused, *why);
  }
  // From here on it is the worker itself that must live; who joined for it may go.
  self->demonitor(known->first);
  st.who.erase(known);
  m.handle = x.handle;
  m.address = x.address;
  m.info.device = x.device;
  m.info.state = "live";
  st.reports.heard(m.where, self->clock().now());
  m.joined = ++st.joins;
  m.live_since = self->clock().now();
  watch(self, caf::actor_cast<caf::strong_actor_ptr>(x.handle), m);
  note_serving(st, m);
  if (st.timeout && note_return(self, m)) rest_after_return(self, m);
  begin_watching(self, m, verdicts_of(self));
  return true;
}

/// All peers reach that worker, for the first time or again.
void trust(membership_ptr self, const seat& where) {
  auto& st = self->state;
  changed(self);
  if (const auto missing = st.config.seats.missing(); !missing.empty())
    spdlog::info("waiting for workers missing=\"{}\"", missing);
  // Also one that is still being opened: its size would not be checked again.
  if (!st.open && st.current
      && scheduler::could_grow(st.config.shape, st.newest.plan, ready_seats(st)))
    abort_opening(self);
  try_open(self);
  consider(self, st.members.at(where).info.seat + " can be used");
}

/// A worker has no part any more, although it lives: others do not hear it, or it them. What it has
/// of KV it keeps.
void fence(membership_ptr self, const seat& where, const std::string& reason) {
  auto& st = self->state;
  const auto& m = st.members.at(where);
  if (has_work(st, where)) {
    ++st.losses;
    if (st.config.metrics) st.config.metrics->failover(m.info.role, net::failover_cause::partition);
    changed(self); // before the pipeline ends, as in lose()
    close_epochs(self, m.info, " fenced: " + reason);
    try_open(self);
  } else if (st.current && st.current->what.has(where)) {
    abort_opening(self);
    try_open(self);
  }
  changed(self);
}

reach_verdicts verdicts_of(membership_ptr self) {
  return {[self](const seat& where) { trust(self, where); },
          [self](const seat& where, const std::string& reason) { fence(self, where, reason); },
          [self](const seat& where, const std::string& reason) {
            lose(self, where, reason, net::failover_cause::partition);
          }};
}

/// A spare takes the part of a worker that is slow, where no KV is computed again for it. False: it
/// keeps its part for now, as while an epoch takes over: a loss would end both.
bool replace_slow(membership_ptr self, const seat& where) {
  auto& st = self->state;
  const auto& m = st.members.at(where);
  const auto now = self->clock().now();
  const bool soon = st.replaced_at && now - *st.replaced_at < st.config.replace_every;
  if (!m.info.slow || !st.open || st.before || st.current || soon || !has_work(st, where)
      || m.info.here || !has_substitute(st, where))
    return false;
  st.replaced_at = now;
  st.shunned.emplace_back(m.info.host, m.info.pid);
  if (st.shunned.size() > shunned_max) st.shunned.pop_front();
  lose(self, where, "it is slow, and a spare takes its part",
       net::failover_cause::slow); // and tells of the change
  return true;
}

/// A spare takes the part of one slow worker, where some can be replaced now.
void replace_a_slow_one(membership_ptr self) {
  for (const auto& [where, m] : self->state.members)
    if (replace_slow(self, where)) return; // which ends the epoch
}

/// A worker has become slow (gray failure) or has recovered.
void on_pace(membership_ptr self, const scheduler::slow_workers::change& x) {
  auto& st = self->state;
  const auto found = st.members.find(x.who);
  if (found == st.members.end()) return;
  auto& m = found->second;
  m.info.slow = x.slow;
  if (!x.slow) std::erase(st.shunned, std::pair{m.info.host, m.info.pid});
  tell(x.slow ? event_kind::worker_slow : event_kind::worker_recovered,
       {{"seat", m.info.seat},
        {"worker", m.info.name},
        {"host", m.info.host},
        {"pid", m.info.pid},
        {"times_its_peers", x.times}});
  if (!replace_slow(self, x.who)) changed(self);
}

/// From now on a slow shard of that cell can be replaced.
void on_whole_parity(membership_ptr self, uint64_t epoch, uint32_t cell) {
  note_whole_parity(self->state, epoch, cell);
  replace_a_slow_one(self);
}

scale_effects effects_of(membership_ptr self) {
  return {[self](const seat& where, const std::string& reason) {
            lose(self, where, reason, net::failover_cause::ordered);
          },
          [self](const std::string& reason) { consider(self, reason); }};
}

/// Takes the configuration, says who is missing, and starts the periodic work.
void begin(membership_ptr self, membership_config config) {
  self->state.config = std::move(config);
  self->state.changes = std::make_shared<size_changes>();
  self->state.lose = [self](const seat& where, const std::string& reason,
                            net::failover_cause cause) { lose(self, where, reason, cause); };
  auto& st = self->state;
  st.wanted = scheduler::sizes_of(st.config.shape);
  for (const auto& where : st.config.seats.all()) {
    const auto group = where.group();
    const auto seats = st.config.seats.members_of(group);
    const auto members = scheduler::size_of(st.wanted, group, st.config.shape.cell_seats);
    st.extra_seats[group] = seats - std::min(seats, members);
  }
  for (const auto& [group, seats] : st.config.extra_seats) st.extra_seats[group] = seats;
  // From the start everybody knows who is missing.
  if (self->state.config.seats.free_count() > 0) changed(self);
  const auto poll_interval = self->state.config.poll_interval;
  if (poll_interval.count() > 0) self->delayed_send(self, poll_interval, caf::tick_atom_v);
  if (const auto dead = self->state.config.dead; dead.count() > 0) {
    const auto silence = std::chrono::duration_cast<std::chrono::milliseconds>(dead);
    self->state.timeout.emplace(silence);
    self->state.reach = scheduler::reach_book{scheduler::failing_needed(silence)};
    self->delayed_send(self, self->state.timeout->every(), probe_atom_v);
  }
  begin_ticking(self);
  self->set_down_handler([self](const caf::down_msg& down) { on_down(self, down); });
  self->set_exit_handler([self](const caf::exit_msg& x) {
    for (const auto& [where, m] : self->state.members)
      if (m.handle) self->send(m.handle, worker_leave{"the service is shutting down"});
    self->quit(x.reason);
  });
}

} // namespace

membership_self::behavior_type membership(membership_self::stateful_pointer<membership_state> self,
                                          membership_config config) {
  end_on_exceptions(self);
  begin(self, std::move(config));
  return {
      [self](const seat_ask& x) {
        return on_seat(self, x,
                       [self](worker_role role) { return grow_for(self, role, effects_of(self)); });
      },
      [self](const worker_facts& x) { return on_facts(self, x); },
      [self](caf::open_atom, uint64_t built) { return on_ask(self, built); },
      [self](const epoch_next& x) { return on_next(self, x.built); },
      [self](const epoch_settled& x) {
        on_settled(self, x, [](membership_ptr moved) { finish_change(moved, effects_of(moved)); });
        replace_a_slow_one(self);
      },
      [self](const pool_resize& x) { return on_resize(self, x, effects_of(self)); },
      [self](const worker_drain& x) { return on_drain(self, x, effects_of(self)); },
      [self](const pool_balance& x) { on_balance(self, x, effects_of(self)); },
      [self](const pool_bounds& x) { on_bounds(self->state, x); },
      [self](const cells_ptr& x) { return on_cells(self->state, *x); },
      [self](wake_atom, const std::string& seat_name, uint32_t incarnation) {
        for (const auto& [where, m] : self->state.members)
          if (m.info.seat == seat_name && m.info.incarnation == incarnation && !m.handle) {
            lose(self, where, "it took too long to load", net::failover_cause::timeout);
            return;
          }
      },
      [self](const worker_stopped& x) { on_stopped(self, x.pid); },
      [self](const seat_failing& x) {
        note_failing(self->state, x);
        changed(self);
        try_open(self); // the first epoch waits for nobody who fails
      },
      [self](caf::tick_atom) {
        if (self->state.other_pipeline) consider(self, "another pipeline is faster");
        look_at_pace(self, [self](const auto& x) { on_pace(self, x); });
        self->delayed_send(self, self->state.config.poll_interval, caf::tick_atom_v);
      },
      [self](probe_atom) {
        probe_workers(self, [self](const seat& where, const std::string& reason) {
          lose(self, where, reason, net::failover_cause::timeout);
        });
        self->delayed_send(self, self->state.timeout->every(), probe_atom_v);
      },
      [self](reach_atom, uint64_t tick) {
        watch_members(self, tick, verdicts_of(self));
        watch_opening(self);
        retry_dropped(self);
        serve_with_fewer(self);
        watch_change(self, effects_of(self));
        replace_a_slow_one(self);
      },
      [self](parity_whole_atom, uint64_t epoch, uint32_t cell) {
        on_whole_parity(self, epoch, cell);
      },
      [self](const injure& x) { return on_injure(self, x); },
      [self](const trace_workers_ask&) { return workers_to_trace(self->state); },
      [self](status_atom) -> caf::result<system_status> { return answer_status(self); },
  };
}

membership_actor start_membership(caf::actor_system& system, membership_config config) {
  return system.spawn(membership, std::move(config));
}

} // namespace lamella::actors
