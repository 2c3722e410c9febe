#include "actors/membership/membership_epochs.hpp"

#include "actors/membership/loss_causes.hpp"
#include "actors/membership/membership_pipeline.hpp"
#include "actors/membership/membership_seats.hpp"
#include "actors/membership/pool_parts.hpp"
#include "actors/protocol/epoch_parts.hpp"
#include "actors/protocol/epochs.hpp"
#include "actors/protocol/work_reports.hpp"
#include "actors/shared/events.hpp"
#include "actors/shared/explain.hpp"
#include "base/buggify.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace lamella::actors {

namespace {

using scheduler::seat;
using scheduler::worker_role;

/// After an epoch that the pipeline could not move to.
constexpr std::chrono::seconds drop_rest{1};
/// For workers that reply, or others instead of them; shorter than the supervisor waits.
constexpr std::chrono::seconds beside_limit{50};
/// Before the reason why KV cannot be moved to the shards of the next epoch.
constexpr const char* recomputed = "its KV is computed again: ";

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
    const auto part = part_of_shard(st, done.what.design, i);
    st.handed_caches.emplace(part, mine);
    const auto before = st.caches.find(part);
    if (before == st.caches.end() || before->second != mine) result.empty.push_back(i);
  }
  std::vector<event_field> fields{{"epoch", done.what.epoch},
                                  {"replicas", done.what.plan.decoding},
                                  {"of", done.what.design.shape.replicas},
                                  {"shards", done.what.plan.shards.size()},
                                  {"empty", result.empty.size()}};
  if (result.beside != 0) fields.emplace_back("beside", result.beside);
  tell(event_kind::epoch_opened, std::move(fields));
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
    self->state.lose(where, "it opened the epoch without its own part", net::failover_cause::fault);
    return;
  }
  if (attends && number != no_part) {
    result.shards[number] = std::move(answer.shard);
    result.caches[number] = st.memory[where][part_of_shard(st, what.design, number)];
    result.rooms[number] = {st.members.at(where).info.host, answer.free_bytes};
  } else if (!attends) {
    result.replicas[number] = std::move(answer.replica);
    result.own_kv[number] = std::move(answer.own);
    result.hosts[number] = st.members.at(where).info.host;
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

/// A worker has no memory for its part beside the one that it has: it is well, and goes on serving.
void give_up_beside(membership_ptr self, const std::string& why) {
  auto& st = self->state;
  st.apart = !st.current->what.levels;
  tell(event_kind::epoch_dropped, {{"epoch", st.current->what.epoch}, {"reason", why}});
  if (st.apart && st.changes->current) st.changes->current->reason = recomputed + why;
  // The pipeline stays: what has become possible meanwhile is considered again.
  if (!st.apart) st.dropped_at = self->clock().now();
  st.asked->promise.deliver(caf::make_error(st.apart ? ec::no_memory : ec::aborted, why));
  st.asked.reset();
  abort_opening(self);
}

void on_refused(membership_ptr self, const seat& where, bool alone, const caf::error& reason) {
  const auto why = explain(self->system(), reason);
  if (!alone && reason == ec::no_memory) return give_up_beside(self, why);
  self->state.lose(where, why, cause_of_refusal(reason));
}

void send_order(membership_ptr self, const seat& where, const epoch_open& order) {
  auto& st = self->state;
  const bool alone = order.beside == 0;
  st.current->left.insert(where);
  self->request(st.members.at(where).handle, st.config.epoch_timeout, order)
      .then([self, what = st.current->what, alone, number = order.number,
             where](epoch_ready& answer) { on_ready(self, what, alone, where, number, answer); },
            [self, epoch = order.epoch, alone, where](caf::error& reason) {
              if (self->state.current && self->state.current->what.epoch == epoch)
                on_refused(self, where, alone, reason);
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

/// The pipeline of a newer epoch runs, or of none that it was given.
void on_open(membership_ptr self, uint64_t built) {
  auto& st = self->state;
  if (built == 0 || built != st.handed_epoch) return;
  st.caches = st.handed_caches;
  st.held = scheduler::held_by(st.newest.design.shape, st.newest.plan);
  st.config.shape = st.newest.design.shape;
  st.config.pool = st.newest.design.pool;
}

/// What the supervisor gets, before any worker has answered.
epoch_members answer_for(const membership_state& st, const membership_state::numbered_plan& what,
                         uint64_t beside) {
  epoch_members result;
  result.epoch = what.epoch;
  result.beside = beside;
  result.streams = what.plan.streams;
  result.sizes = scheduler::sizes_of(what.design.shape);
  result.layout = what.design.pool.layout;
  result.level = what.levels;
  result.sizes_before = scheduler::sizes_of(st.config.shape);
  result.layout_before = st.config.pool.layout;
  result.replicas.resize(what.plan.replicas.size());
  result.own_kv.resize(what.plan.replicas.size());
  result.hosts.resize(what.plan.replicas.size());
  result.shards.resize(what.plan.shards.size());
  result.caches.resize(what.plan.shards.size());
  result.lenders.resize(what.lenders.size());
  result.rooms.resize(what.plan.shards.size());
  return result;
}

/// Whether it is for want of shards that no epoch is possible; a pool of fewer is no help against
/// anything else.
bool lacks_shards(const membership_state& st) {
  const auto lacking = scheduler::lacking_roles(st.config.shape, ready_seats(st), st.held);
  return std::ranges::count(lacking, worker_role::attention) > 0;
}

} // namespace

void try_open(membership_ptr self) {
  auto& st = self->state;
  if (!st.asked || st.current) return;
  const bool beside = st.asked->beside;
  const auto now = self->clock().now();
  const bool fewer = st.short_since && now - *st.short_since >= st.config.fewer_after;
  auto next = beside ? better_plan(st) : next_plan(st, fewer);
  if (!next && beside) {
    st.asked->promise.deliver(caf::make_error(ec::aborted, "there is no better epoch now"));
    st.asked.reset();
  }
  if (!next) {
    if (!beside && !st.short_since && lacks_shards(st)) st.short_since = now;
    return;
  }
  const auto shards = next->design.shape.shards;
  const bool is_short = shards < st.config.shape.shards && !beside
                        && st.wanted != scheduler::sizes_of(next->design.shape);
  if (is_short)
    tell(event_kind::pool_short, {{"pool", "attention"},
                                  {"members", shards},
                                  {"of", scheduler::size_of(st.wanted, worker_role::attention)}});
  st.short_since.reset();
  if (!beside) st.apart = false;
  take_pipeline(self, *next);
  membership_state::numbered_plan what{++st.epoch, std::move(next->plan), next->design, {}};
  what.levels = beside && std::exchange(st.unequal, false);
  if (beside && (what.levels || moves_kv(st, what))) what.lenders = st.newest.plan.shards;
  auto order = order_of(st, what);
  order.beside = beside ? st.newest.epoch : 0;
  st.current.emplace(membership_state::opening{answer_for(st, what, order.beside), what, {}});
  if (!beside) {
    st.config.shape = what.design.shape;
    st.config.pool = what.design.pool;
    st.held = scheduler::held_by(what.design.shape, what.plan);
    st.newest = what;
    if (is_short) changed(self); // the pool lacks nobody any more without whom it cannot serve
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

void abort_opening(membership_ptr self) {
  auto& st = self->state;
  if (!st.current) return;
  const auto over = std::move(*st.current);
  st.current.reset();
  send_close(self, over.what, over.result.beside != 0);
}

void close_epochs(membership_ptr self, const worker_info& who, const std::string& what) {
  auto& st = self->state;
  // The successor of a shard has as much time as that of the first one. Successors that end while
  // they load have no time of their own: the pool would wait for the last of them.
  if (scheduler::role_named(who.role) == worker_role::attention && (st.open || who.state == "live"))
    st.short_since.reset();
  if (st.current) send_close(self, st.current->what, false);
  if (st.open) send_close(self, st.newest, false);
  if (st.before) send_close(self, *st.before, false);
  if (st.before)
    tell(event_kind::epoch_closed, {{"epoch", st.before->epoch}, {"reason", who.seat + what}});
  st.before.reset();
  st.due = st.unequal = st.other_pipeline = false;
  if (st.asked && st.asked->beside) { // the supervisor hears of the loss and asks again
    st.asked->promise.deliver(caf::make_error(ec::aborted, "a worker was lost"));
    st.asked.reset();
  }
  st.current.reset();
  if (!std::exchange(st.open, false)) return;
  tell(event_kind::epoch_closed, {{"epoch", st.newest.epoch}, {"reason", who.seat + what}});
  if (auto owner = caf::actor_cast<caf::actor>(st.owner))
    caf::anon_send(owner, epoch_lost{st.epoch, who.role, who.seat + what});
}

void consider(membership_ptr self, const std::string& reason) {
  auto& st = self->state;
  if (!st.open || st.before || st.current || st.due || !better_plan(st)) return;
  st.due = true;
  if (auto owner = caf::actor_cast<caf::actor>(st.owner))
    caf::anon_send(owner, epoch_due{st.newest.epoch, reason});
}

caf::result<epoch_members> on_ask(membership_ptr self, uint64_t built) {
  auto& st = self->state;
  on_open(self, built);
  // What was to be changed is tried again with the pipeline that is made anew.
  if (st.before || !st.draining.empty()) st.dropped_at = self->clock().now();
  if (st.current && st.current->result.beside != 0) abort_opening(self);
  if (st.before) send_close(self, *st.before, false);
  if (st.open) send_close(self, st.newest, false);
  if (st.open)
    tell(event_kind::epoch_closed,
         {{"epoch", st.newest.epoch}, {"reason", "the pipeline is made anew"}});
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
  st.asked = membership_state::question{self->make_response_promise<epoch_members>(), true,
                                        self->clock().now()};
  auto promise = st.asked->promise;
  try_open(self);
  return promise;
}

void on_settled(membership_ptr self, const epoch_settled& x, void (*moved)(membership_ptr)) {
  auto& st = self->state;
  if (!st.before || x.epoch != st.newest.epoch) return;
  auto before = std::move(*st.before);
  st.before.reset();
  if (x.taken) {
    on_open(self, x.epoch);
    send_close(self, before, true);
    tell(event_kind::epoch_closed,
         {{"epoch", before.epoch}, {"reason", fmt::format("epoch {} has taken over", x.epoch)}});
    st.newest.lenders.clear(); // with that epoch their KV is needed no more
    moved(self);
  } else {
    st.apart = x.no_memory;
    if (st.changes->current)
      st.changes->current->reason = (x.no_memory ? recomputed : "") + x.reason;
    tell(event_kind::epoch_dropped, {{"epoch", x.epoch}, {"reason", x.reason}});
    send_close(self, st.newest, true);
    st.newest = std::move(before);
    st.dropped_at = self->clock().now();
  }
  changed(self);
  if (x.taken) consider(self, "the workers have changed");
}

void watch_opening(membership_ptr self) {
  auto& st = self->state;
  if (!st.asked || !st.asked->beside || self->clock().now() - st.asked->since < beside_limit)
    return;
  const std::string why = "its workers could not open it in time";
  if (st.current)
    tell(event_kind::epoch_dropped, {{"epoch", st.current->what.epoch}, {"reason", why}});
  st.asked->promise.deliver(caf::make_error(ec::aborted, why));
  st.asked.reset();
  abort_opening(self);
  st.dropped_at = self->clock().now();
}

void retry_dropped(membership_ptr self) {
  auto& st = self->state;
  if (!st.dropped_at || self->clock().now() - *st.dropped_at < drop_rest) return;
  if (!st.open || st.before || st.current) return;
  st.dropped_at.reset();
  consider(self, "once more");
}

void serve_with_fewer(membership_ptr self) {
  const auto& st = self->state;
  if (st.short_since && self->clock().now() - *st.short_since >= st.config.fewer_after)
    try_open(self);
  // Who came back while that epoch was being opened.
  if (st.config.design_of && !st.dropped_at && st.wanted != scheduler::sizes_of(st.config.shape))
    consider(self, "a pool can have the size that it should have");
}

} // namespace lamella::actors
