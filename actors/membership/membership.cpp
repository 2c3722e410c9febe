#include "actors/membership/membership.hpp"

#include "actors/machine/sizing.hpp"
#include "actors/membership/loss_causes.hpp"
#include "actors/membership/membership_failing.hpp"
#include "actors/membership/membership_injury.hpp"
#include "actors/membership/membership_pace.hpp"
#include "actors/membership/membership_probe.hpp"
#include "actors/membership/membership_reach.hpp"
#include "actors/membership/membership_refusal.hpp"
#include "actors/membership/membership_seats.hpp"
#include "actors/membership/membership_status.hpp"
#include "actors/protocol/epochs.hpp"
#include "actors/protocol/exceptions.hpp"
#include "actors/protocol/explain.hpp"
#include "actors/protocol/join.hpp"
#include "actors/protocol/status.hpp"
#include "base/buggify.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>

namespace lamella::actors {

namespace {

using membership_ptr = membership_self::stateful_pointer<membership_state>;
using scheduler::seat;
using scheduler::worker_role;

/// Processes that were slow and are remembered; one is replaced in a minute.
constexpr size_t shunned_max = 256;

bool has_part(const scheduler::epoch_plan& plan, const seat& where) {
  const auto& list = where.role == worker_role::attention ? plan.shards : plan.replicas;
  return std::find(list.begin(), list.end(), where) != list.end();
}

/// The streams that a worker with a part in an epoch serves: a shard all, a replica its own.
std::vector<scheduler::stream_id> streams_of(const scheduler::epoch_plan& plan, const seat& where) {
  const auto found = std::find(plan.replicas.begin(), plan.replicas.end(), where);
  std::vector<scheduler::stream_id> streams;
  for (const auto& x : plan.streams)
    if (found == plan.replicas.end() || x.replica == found - plan.replicas.begin())
      streams.push_back(x.stream);
  return streams;
}

void lose(membership_ptr self, const seat& where, const std::string& reason,
          net::failover_cause cause, bool own_fault = false);
void close_epoch(membership_ptr self, bool grown, const worker_info& who, const std::string& what);
void try_open(membership_ptr self);
reach_verdicts verdicts_of(membership_ptr self);

/// The epoch is complete: hands it to the supervisor. A shard has the KV only if its cache is the
/// one that the newest pipeline wrote to: a cache created for an epoch that was never handed out
/// counts as empty even if its worker kept it.
void hand_out(membership_ptr self) {
  auto& st = self->state;
  auto& result = st.current->result;
  st.handed_epoch = st.epoch;
  st.handed_caches.clear();
  for (uint32_t i = 0; i < st.plan.shards.size(); ++i) {
    const auto& where = st.plan.shards[i];
    const auto mine = std::pair{where, st.members.at(where).info.incarnation};
    st.handed_caches.emplace(i, mine);
    const auto before = st.caches.find(i);
    if (before == st.caches.end() || before->second != mine) result.empty.push_back(i);
  }
  spdlog::info("epoch open epoch={} replicas={} of {} shards={} empty={}", st.epoch,
               st.plan.decoding, st.config.shape.replicas, st.plan.shards.size(),
               result.empty.size());
  result.compute = st.compute;
  result.attention = st.attention;
  st.open = st.was_open = true;
  result.losses = st.losses;
  st.asked->deliver(std::move(result));
  st.asked.reset();
  st.current.reset();
}

void on_ready(membership_ptr self, uint64_t epoch, const seat& where, uint32_t number,
              epoch_ready& answer) {
  auto& st = self->state;
  const bool attends = where.role == worker_role::attention;
  // Also where the epoch was aborted: the next reply will be that the worker kept this cache.
  if (attends && !answer.kept) {
    st.memory[where] = ++st.memories;
    std::erase_if(st.caches, [&](const auto& x) { return x.second.first == where; });
  }
  if (!st.current || st.current->result.epoch != epoch) return; // of an epoch that was given up
  if (attends ? !answer.shard : !answer.replica) {
    lose(self, where, "it opened the epoch without its own part", net::failover_cause::fault);
    return;
  }
  auto& result = st.current->result;
  if (attends) {
    result.shards[number] = std::move(answer.shard);
    result.caches[number] = st.memory[where];
  } else {
    result.replicas[number] = std::move(answer.replica);
    result.own_kv[number] = {std::move(answer.shard), std::move(answer.source)};
  }
  st.current->left.erase(where);
  if (!st.current->left.empty()) return;
  if (buggify(buggify_point::epoch_again)) {
    close_epoch(self, true, st.members.at(where).info, " opened it last");
    try_open(self);
    return;
  }
  hand_out(self);
}

void send_order(membership_ptr self, const seat& where, const epoch_open& order) {
  auto& st = self->state;
  st.current->left.insert(where);
  self->request(st.members.at(where).handle, st.config.epoch_timeout, order)
      .then([self, epoch = order.epoch, number = order.number,
             where](epoch_ready& answer) { on_ready(self, epoch, where, number, answer); },
            [self, epoch = order.epoch, where](caf::error& reason) {
              if (self->state.current && self->state.current->result.epoch == epoch)
                lose(self, where, explain(self->system(), reason), cause_of_refusal(reason));
            });
}

/// Opens the next epoch when it was requested and enough workers are ready.
void try_open(membership_ptr self) {
  auto& st = self->state;
  if (!st.asked || st.current) return;
  auto plan = next_plan(st);
  if (!plan) return;
  st.plan = std::move(*plan);
  st.held = st.plan.shards;
  epoch_open order;
  order.epoch = ++st.epoch;
  order.streams = st.plan.streams;
  const auto peer_of = [&](const seat& where) {
    const auto& m = st.members.at(where);
    return epoch_peer{scheduler::to_string(where), m.address, scheduler::number_of(where),
                      m.info.incarnation};
  };
  for (const auto& where : st.plan.replicas) order.replicas.push_back(peer_of(where));
  for (const auto& where : st.plan.shards) order.shards.push_back(peer_of(where));
  auto& result = st.current.emplace().result;
  result.epoch = order.epoch;
  result.streams = order.streams;
  result.replicas.resize(order.replicas.size());
  result.own_kv.resize(order.replicas.size());
  result.shards.resize(order.shards.size());
  result.caches.resize(order.shards.size());
  for (const auto* list : {&st.plan.replicas, &st.plan.shards})
    for (order.number = 0; order.number < list->size(); ++order.number)
      send_order(self, (*list)[order.number], order);
}

/// Ends the newest epoch; the supervisor will ask for another one.
void close_epoch(membership_ptr self, bool grown, const worker_info& who, const std::string& what) {
  auto& st = self->state;
  if (!st.open && !st.current) return;
  for (const auto& [where, m] : st.members)
    if (m.handle && has_part(st.plan, where)) self->send(m.handle, epoch_close{st.epoch});
  st.current.reset();
  if (!std::exchange(st.open, false)) return;
  if (auto owner = caf::actor_cast<caf::actor>(st.owner))
    caf::anon_send(owner, epoch_lost{st.epoch, grown, who.role, who.seat + what});
}

/// A worker is gone or must go: its seat is free and the epoch it was part of is over.
void lose(membership_ptr self, const seat& where, const std::string& reason,
          net::failover_cause cause, bool own_fault) {
  auto& st = self->state;
  auto node = st.members.extract(where);
  if (!node) return;
  auto& gone = node.mapped();
  st.config.seats.give_back(where, gone.info.incarnation);
  st.pace.forget(where);
  stop_watching(self, gone);
  gone.info.trouble = reason;
  spdlog::warn("worker lost seat={} incarnation={} worker={} pid={} reason=\"{}\"", gone.info.seat,
               gone.info.incarnation, gone.info.name, gone.info.pid, reason);
  if (gone.handle)
    self->send(gone.handle, worker_leave{reason});
  else
    st.refusals[where] = reason;
  if (gone.handle && has_part(st.plan, where)) {
    ++st.losses;
    if (st.config.metrics) st.config.metrics->failover(gone.info.role, cause);
  }
  if (st.config.on_part_lost && has_part(st.plan, where))
    st.config.on_part_lost(gone.info, st.epoch, streams_of(st.plan, where), own_fault);
  if (st.config.on_worker) st.config.on_worker(gone.info, true, own_fault);
  // Without a part in it, a spare does not end an epoch.
  if (has_part(st.plan, where)) {
    close_epoch(self, false, gone.info, " lost: " + reason);
    try_open(self); // a handed-out one is asked for again, one under way is not
  }
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
  if ((st.open || st.current) && scheduler::could_grow(st.config.shape, st.plan, ready_seats(st)))
    close_epoch(self, true, st.members.at(where).info, " can be used");
  try_open(self);
}

/// A worker has no part any more, although it lives: others do not hear it, or it them. What it has
/// of KV it keeps.
void fence(membership_ptr self, const seat& where, const std::string& reason) {
  auto& st = self->state;
  const auto& m = st.members.at(where);
  if (has_part(st.plan, where)) {
    ++st.losses;
    if (st.config.metrics) st.config.metrics->failover(m.info.role, net::failover_cause::partition);
    close_epoch(self, false, m.info, " fenced: " + reason);
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

/// A worker has become slow (gray failure) or has recovered.
void on_pace(membership_ptr self, const scheduler::slow_workers::change& x) {
  auto& st = self->state;
  const auto found = st.members.find(x.who);
  if (found == st.members.end()) return;
  auto& m = found->second;
  m.info.slow = x.slow;
  spdlog::warn("worker {} seat={} worker={} host={} pid={} times_its_peers={:.1f}",
               x.slow ? "slow" : "recovered", m.info.seat, m.info.name, m.info.host, m.info.pid,
               x.times);
  const auto now = self->clock().now();
  const bool soon = st.replaced_at && now - *st.replaced_at < st.config.replace_every;
  if (x.slow && st.open && !soon && has_part(st.plan, x.who) && !is_of_this_process(m)
      && has_substitute(st, x.who)) {
    st.replaced_at = now;
    st.shunned.emplace_back(m.info.host, m.info.pid);
    if (st.shunned.size() > shunned_max) st.shunned.pop_front();
    lose(self, x.who, "it is slow, and a spare takes its part",
         net::failover_cause::slow); // and tells of the change
  } else {
    changed(self);
  }
}

/// Takes the configuration, says who is missing, and starts the periodic work.
void begin(membership_ptr self, membership_config config) {
  self->state.config = std::move(config);
  // From the start everybody knows who is missing.
  if (self->state.config.seats.free_count() > 0) changed(self);
  const auto poll_interval = self->state.config.poll_interval;
  if (poll_interval.count() > 0) self->delayed_send(self, poll_interval, caf::tick_atom_v);
  if (const auto dead = self->state.config.dead; dead.count() > 0) {
    self->state.timeout.emplace(std::chrono::duration_cast<std::chrono::milliseconds>(dead));
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
      [self](const seat_ask& x) { return on_seat(self, x); },
      [self](const worker_facts& x) { return on_facts(self, x); },
      [self](caf::open_atom, uint64_t built) -> caf::result<epoch_members> {
        auto& st = self->state;
        if (built != 0 && built == st.handed_epoch) st.caches = st.handed_caches;
        st.owner = caf::actor_cast<caf::actor_addr>(self->current_sender());
        st.asked = self->make_response_promise<epoch_members>();
        try_open(self);
        return *st.asked;
      },
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
        look_at_pace(self, [self](const auto& x) { on_pace(self, x); });
        self->delayed_send(self, self->state.config.poll_interval, caf::tick_atom_v);
      },
      [self](probe_atom) {
        probe_workers(self, [self](const seat& where, const std::string& reason) {
          lose(self, where, reason, net::failover_cause::timeout);
        });
        self->delayed_send(self, self->state.timeout->every(), probe_atom_v);
      },
      [self](reach_atom, uint64_t tick) { watch_members(self, tick, verdicts_of(self)); },
      [self](const injure& x) { return on_injure(self, x); },
      [self](status_atom) -> caf::result<system_status> { return answer_status(self); },
  };
}

} // namespace lamella::actors
