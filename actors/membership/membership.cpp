#include "actors/membership/membership.hpp"

#include "actors/machine/sizing.hpp"
#include "actors/membership/loss_causes.hpp"
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

/// After an epoch that the pipeline could not move to.
constexpr std::chrono::seconds drop_rest{1};

bool has_part(const scheduler::epoch_plan& plan, const seat& where) {
  const auto& list = where.role == worker_role::attention ? plan.shards : plan.replicas;
  return std::find(list.begin(), list.end(), where) != list.end();
}

/// In an epoch that serves, served last, or is being opened on its own.
bool has_part(const membership_state& st, const seat& where) {
  return has_part(st.newest.plan, where) || (st.before && has_part(st.before->plan, where));
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
void close_epochs(membership_ptr self, const worker_info& who, const std::string& what);
void try_open(membership_ptr self);
void consider(membership_ptr self, const std::string& reason);
reach_verdicts verdicts_of(membership_ptr self);

/// The epoch is complete: hands it to the supervisor. A shard has the KV only if its cache is the
/// one that the newest pipeline wrote to: a cache created for an epoch that was never handed out
/// counts as empty even if its worker kept it.
void hand_out(membership_ptr self) {
  auto& st = self->state;
  auto done = std::move(*st.current);
  st.current.reset();
  auto& result = done.result;
  st.handed_epoch = done.what.epoch;
  st.handed_caches.clear();
  for (uint32_t i = 0; i < done.what.plan.shards.size(); ++i) {
    const auto mine = result.caches[i];
    st.handed_caches.emplace(i, mine);
    const auto before = st.caches.find(i);
    if (before == st.caches.end() || before->second != mine) result.empty.push_back(i);
  }
  spdlog::info("epoch open epoch={} replicas={} of {} shards={} empty={}{}", done.what.epoch,
               done.what.plan.decoding, done.what.design.shape.replicas,
               done.what.plan.shards.size(), result.empty.size(),
               result.beside != 0 ? fmt::format(" beside={}", result.beside) : std::string{});
  result.compute = st.compute;
  result.attention = st.attention;
  if (result.beside != 0) st.before = std::move(st.newest);
  st.newest = std::move(done.what);
  st.open = st.was_open = true;
  result.losses = st.losses;
  st.asked->promise.deliver(std::move(result));
  st.asked.reset();
}

/// Tells the workers of an epoch that it is over.
void send_close(membership_ptr self, const membership_state::numbered_plan& what, bool settled) {
  for (const auto& where : what.workers())
    if (const auto found = self->state.members.find(where);
        found != self->state.members.end() && found->second.handle)
      self->send(found->second.handle, epoch_close{what.epoch, settled});
}

/// Stops opening an epoch beside the one that serves, or that one itself.
void abort_opening(membership_ptr self) {
  auto& st = self->state;
  if (!st.current) return;
  const auto over = std::move(*st.current);
  st.current.reset();
  send_close(self, over.what, over.result.beside != 0);
}

/// What a worker has made for an epoch. Also where the epoch was given up, the next reply will be
/// that the worker kept this cache.
void note_caches(membership_state& st, const seat& where, const epoch_design& design,
                 uint32_t number, bool kept, bool alone) {
  auto& memory = st.memory[where];
  const auto part = part_of_shard(st, design, number);
  if (!kept || !memory.contains(part)) {
    const auto mine = ++st.memories;
    if (alone) memory.clear(); // it has no other any more
    memory[part] = mine;
  }
}

void on_ready(membership_ptr self, const membership_state::numbered_plan& what, bool alone,
              const seat& where, uint32_t number, epoch_ready& answer) {
  auto& st = self->state;
  const bool attends = where.role == worker_role::attention;
  if (attends && number != no_part) note_caches(st, where, what.design, number, answer.kept, alone);
  if (!st.current || st.current->what.epoch != what.epoch) return; // it was given up
  auto& result = st.current->result;
  const auto lends = std::ranges::find(what.lenders, where);
  const bool lent = lends == what.lenders.end() || answer.lender;
  if (number != no_part
      && !(attends ? static_cast<bool>(answer.shard) : static_cast<bool>(answer.replica) && lent)) {
    lose(self, where, "it opened the epoch without its own part", net::failover_cause::fault);
    return;
  }
  if (attends && number != no_part) {
    result.shards[number] = std::move(answer.shard);
    result.caches[number] = st.memory[where][part_of_shard(st, what.design, number)];
  } else if (!attends) {
    result.replicas[number] = std::move(answer.replica);
    result.own_kv[number] = {std::move(answer.shard), std::move(answer.source)};
  }
  if (lends != what.lenders.end())
    result.lenders[static_cast<size_t>(lends - what.lenders.begin())] = std::move(answer.lender);
  st.current->left.erase(where);
  if (!st.current->left.empty()) return;
  if (buggify(buggify_point::epoch_again)) {
    abort_opening(self);
    try_open(self);
    return;
  }
  hand_out(self);
}

void send_order(membership_ptr self, const seat& where, const epoch_open& order) {
  auto& st = self->state;
  st.current->left.insert(where);
  self->request(st.members.at(where).handle, st.config.epoch_timeout, order)
      .then([self, what = st.current->what, alone = order.beside == 0, number = order.number,
             where](epoch_ready& answer) { on_ready(self, what, alone, where, number, answer); },
            [self, epoch = order.epoch, where](caf::error& reason) {
              if (self->state.current && self->state.current->what.epoch == epoch)
                lose(self, where, explain(self->system(), reason), cause_of_refusal(reason));
            });
}

/// The order of an epoch, but for what each worker is told alone.
epoch_open order_of(const membership_state& st, const membership_state::numbered_plan& what) {
  epoch_open order;
  order.epoch = what.epoch;
  order.streams = what.plan.streams;
  order.pool = what.design.pool;
  const auto peer_of = [&](const seat& where) {
    const auto& m = st.members.at(where);
    return epoch_peer{scheduler::to_string(where), m.address, scheduler::number_of(where),
                      m.info.incarnation};
  };
  for (const auto& where : what.plan.replicas) order.replicas.push_back(peer_of(where));
  for (const auto& where : what.plan.shards) order.shards.push_back(peer_of(where));
  for (uint32_t i = 0; i < what.lenders.size(); ++i) {
    order.streams.push_back({scheduler::stream_id{scheduler::move_streams + i},
                             static_cast<uint32_t>(order.replicas.size())});
    order.replicas.push_back(peer_of(what.lenders[i]));
  }
  return order;
}

/// Opens the next epoch when it was requested and enough workers are ready.
void try_open(membership_ptr self) {
  auto& st = self->state;
  if (!st.asked || st.current) return;
  const bool beside = st.asked->beside;
  auto next = beside ? better_plan(st) : next_plan(st);
  if (!next && beside) {
    st.asked->promise.deliver(caf::make_error(ec::aborted, "there is no better epoch now"));
    st.asked.reset();
  }
  if (!next) return;
  membership_state::numbered_plan what{++st.epoch, std::move(next->plan), next->design, {}};
  if (beside && moves_kv(st, what)) what.lenders = st.newest.plan.shards;
  auto order = order_of(st, what);
  order.beside = beside ? st.newest.epoch : 0;
  auto& current = st.current.emplace();
  auto& result = current.result;
  result.epoch = order.epoch;
  result.beside = order.beside;
  result.streams = what.plan.streams;
  result.sizes = scheduler::sizes_of(what.design.shape);
  result.slots = what.design.pool.slots;
  result.sizes_before = scheduler::sizes_of(st.config.shape);
  result.replicas.resize(what.plan.replicas.size());
  result.own_kv.resize(what.plan.replicas.size());
  result.shards.resize(what.plan.shards.size());
  result.caches.resize(what.plan.shards.size());
  result.lenders.resize(what.lenders.size());
  current.what = what;
  if (!beside) {
    st.config.shape = what.design.shape;
    st.config.pool = what.design.pool;
    st.held = what.plan.shards;
    st.newest = what;
  }
  for (const auto& where : what.workers()) {
    const auto lender = std::ranges::find(what.lenders, where);
    order.number = what.number_of(where);
    order.lender =
        lender == what.lenders.end()
            ? no_part
            : static_cast<uint32_t>(what.plan.replicas.size()
                                    + static_cast<size_t>(lender - what.lenders.begin()));
    send_order(self, where, order);
  }
}

/// Ends all epochs; the supervisor will ask for another one.
void close_epochs(membership_ptr self, const worker_info& who, const std::string& what) {
  auto& st = self->state;
  if (st.current) send_close(self, st.current->what, false);
  if (st.open) send_close(self, st.newest, false);
  if (st.before) send_close(self, *st.before, false);
  st.before.reset();
  st.due = false;
  if (st.asked && st.asked->beside) { // the supervisor hears of the loss and asks again
    st.asked->promise.deliver(caf::make_error(ec::aborted, "a worker was lost"));
    st.asked.reset();
  }
  st.current.reset();
  if (!std::exchange(st.open, false)) return;
  if (auto owner = caf::actor_cast<caf::actor>(st.owner))
    caf::anon_send(owner, epoch_lost{st.epoch, who.role, who.seat + what});
}

/// Tells the supervisor when the workers allow a better epoch than the one that serves.
void consider(membership_ptr self, const std::string& reason) {
  auto& st = self->state;
  if (!st.open || st.before || st.current || st.due || !better_plan(st)) return;
  st.due = true;
  if (auto owner = caf::actor_cast<caf::actor>(st.owner))
    caf::anon_send(owner, epoch_due{st.newest.epoch, reason});
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
  const bool ordered = cause == net::failover_cause::ordered;
  spdlog::log(ordered ? spdlog::level::info : spdlog::level::warn,
              "worker {} seat={} incarnation={} worker={} pid={} reason=\"{}\"",
              ordered ? "sent away" : "lost", gone.info.seat, gone.info.incarnation, gone.info.name,
              gone.info.pid, reason);
  if (gone.handle)
    self->send(gone.handle, worker_leave{reason});
  else
    st.refusals[where] = reason;
  st.memory.erase(where);
  const bool had_part = has_part(st, where);
  if (gone.handle && had_part) {
    ++st.losses;
    if (st.config.metrics) st.config.metrics->failover(gone.info.role, cause);
  }
  if (st.config.on_part_lost && had_part)
    st.config.on_part_lost(gone.info, st.newest.epoch, streams_of(st.newest.plan, where),
                           own_fault);
  if (st.config.on_worker) st.config.on_worker(gone.info, true, own_fault);
  if (had_part) {
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
  if (has_part(st, where)) {
    ++st.losses;
    if (st.config.metrics) st.config.metrics->failover(m.info.role, net::failover_cause::partition);
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
  if (x.slow && st.open && !soon && has_part(st, x.who) && !is_of_this_process(m)
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

scale_effects effects_of(membership_ptr self) {
  return {[self](const seat& where, const std::string& reason) {
            lose(self, where, reason, net::failover_cause::ordered);
          },
          [self](const std::string& reason) { consider(self, reason); }};
}

/// The pipeline of a newer epoch runs, or of none that it was given.
void on_open(membership_ptr self, uint64_t built) {
  auto& st = self->state;
  if (built == 0 || built != st.handed_epoch) return;
  st.caches = st.handed_caches;
  st.held = st.newest.plan.shards;
  st.config.shape = st.newest.design.shape;
  st.config.pool = st.newest.design.pool;
}

/// Asks for an epoch on its own: whatever served, does not.
caf::result<epoch_members> on_ask(membership_ptr self, uint64_t built) {
  auto& st = self->state;
  on_open(self, built);
  if (st.current && st.current->result.beside != 0) abort_opening(self);
  if (st.before) send_close(self, *st.before, false);
  if (st.open) send_close(self, st.newest, false);
  st.before.reset();
  st.open = st.due = false;
  if (st.asked) st.asked->promise.deliver(caf::make_error(ec::aborted));
  st.owner = caf::actor_cast<caf::actor_addr>(self->current_sender());
  st.asked = membership_state::question{self->make_response_promise<epoch_members>(), false};
  auto promise = st.asked->promise;
  try_open(self);
  return promise;
}

caf::result<epoch_members> on_next(membership_ptr self, uint64_t built) {
  auto& st = self->state;
  st.due = false;
  if (!st.before) on_open(self, built);
  if (!st.open || st.before || st.asked)
    return caf::make_error(ec::aborted, "there is no epoch that another could replace");
  st.asked = membership_state::question{self->make_response_promise<epoch_members>(), true};
  auto promise = st.asked->promise;
  try_open(self);
  return promise;
}

/// The pipeline has moved to the newest epoch, or stays where it is.
void on_settled(membership_ptr self, const epoch_settled& x) {
  auto& st = self->state;
  if (!st.before || x.epoch != st.newest.epoch) return;
  auto before = std::move(*st.before);
  st.before.reset();
  if (x.taken) {
    on_open(self, x.epoch);
    send_close(self, before, true);
    finish_change(self, effects_of(self));
  } else {
    if (st.changing) st.changing->reason = x.reason;
    spdlog::warn("epoch dropped epoch={} reason=\"{}\"", x.epoch, x.reason);
    send_close(self, st.newest, true);
    st.newest = std::move(before);
    st.dropped_at = self->clock().now();
  }
  changed(self);
  if (x.taken) consider(self, "the workers have changed");
}

/// What the pipeline could not move to is tried again after a while.
void retry_dropped(membership_ptr self) {
  auto& st = self->state;
  if (!st.dropped_at || self->clock().now() - *st.dropped_at < drop_rest) return;
  st.dropped_at.reset();
  consider(self, "once more");
}

/// Takes the configuration, says who is missing, and starts the periodic work.
void begin(membership_ptr self, membership_config config) {
  self->state.config = std::move(config);
  auto& st = self->state;
  st.wanted = scheduler::sizes_of(st.config.shape);
  for (const auto role : {worker_role::model, worker_role::attention, worker_role::prefill}) {
    const auto seats = st.config.seats.members(role);
    st.extra_seats[role] = seats - std::min(seats, scheduler::size_of(st.wanted, role));
  }
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
      [self](caf::open_atom, uint64_t built) { return on_ask(self, built); },
      [self](const epoch_next& x) { return on_next(self, x.built); },
      [self](const epoch_settled& x) { on_settled(self, x); },
      [self](const pool_resize& x) { return on_resize(self, x, effects_of(self)); },
      [self](const worker_drain& x) { return on_drain(self, x, effects_of(self)); },
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
      [self](reach_atom, uint64_t tick) {
        watch_members(self, tick, verdicts_of(self));
        retry_dropped(self);
        watch_change(self, effects_of(self));
      },
      [self](const injure& x) { return on_injure(self, x); },
      [self](status_atom) -> caf::result<system_status> { return answer_status(self); },
  };
}

} // namespace lamella::actors
