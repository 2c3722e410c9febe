#include "actors/membership/membership_scale.hpp"

#include "actors/membership/membership_injury.hpp"
#include "actors/membership/membership_plan.hpp"
#include "actors/membership/membership_seats.hpp"
#include "actors/membership/pool_parts.hpp"
#include "actors/protocol/workers.hpp"
#include "actors/shared/events.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

namespace lamella::actors {

namespace {

using membership_ptr = membership_self::stateful_pointer<membership_state>;
using scheduler::seat;
using scheduler::seat_group;
using scheduler::worker_role;

/// The pool that a cell's name begins with; of a pool its own name.
std::string pool_of(const std::string& name) { return name.substr(0, name.find('/')); }

caf::error refused(const membership_state& st, const std::string& pool, const std::string& why) {
  tell(event_kind::pool_refused, {{"pool", pool}, {"reason", why}});
  if (st.config.metrics) st.config.metrics->pool_changed(pool_of(pool), net::change_end::refused);
  return caf::make_error(ec::resize_refused, why);
}

/// `what`, a pool or a worker, of that name is not there.
caf::error unknown(const char* what, const std::string& name, const std::string& why) {
  tell(event_kind::pool_refused, {{what, name}, {"reason", why}});
  return caf::make_error(ec::nobody_there, why);
}

/// No worker in a seat has that name. Status also lists the prefill workers that are actors on
/// replicas.
caf::error nobody_to_drain(const membership_state& st, const std::string& worker) {
  for (uint32_t i = 0; i < st.config.prefill_on_replicas; ++i)
    for (const char* between : {"-", "/"})
      if (worker == "prefill" + (between + std::to_string(i)))
        return unknown("worker", worker,
                       "'" + worker
                           + "' runs on a model replica and has no process of its own: "
                             "change the size of the pool 'model'");
  return unknown("worker", worker, "there is no worker '" + worker + "'");
}

/// What a change changes beside the members.
void add_what_else(std::vector<event_field>& fields, const pool_change& x) {
  if (!x.to_partition.empty()) fields.emplace_back("partition", x.to_partition);
  if (x.to_kv_bytes != kv_as_it_is) fields.emplace_back("kv_bytes", x.to_kv_bytes);
}

/// The seats of a pool or cell.
seat_group group_of(const membership_state& st, const resized_part& x) {
  const auto& cells = st.config.shape.cell_seats;
  return {x.role, x.cell && *x.cell < cells.size() ? cells[*x.cell] : std::string{}};
}

/// Seats that a group needs at the wanted sizes, its spares and the one of the parity included;
/// none without members: what they would be loaded with may change until it has some.
uint32_t needed_seats(const membership_state& st, const seat_group& group) {
  const auto members = scheduler::size_of(st.wanted, group, st.config.shape.cell_seats);
  const auto extra = st.extra_seats.find(group);
  return members == 0 || extra == st.extra_seats.end() ? members : members + extra->second;
}

/// Gives a group as many seats as it needs; new ones are free.
void add_seats(membership_ptr self, const seat_group& group) {
  auto& st = self->state;
  const auto needed = needed_seats(st, group);
  if (const auto now = st.config.seats.members_of(group); now < needed)
    st.config.seats.add(group, needed - now);
  if (st.config.on_resize) st.config.on_resize(st.config.seats.all());
}

/// Takes seats away that are too many: of draining workers, then free ones, then the last.
void drop_seats(membership_ptr self, const seat_group& group, const scale_effects& effects) {
  auto& st = self->state;
  const auto needed = needed_seats(st, group);
  std::vector<seat> idle;
  for (const auto& where : st.config.seats.all())
    if (where.group() == group && !st.newest.has(where)) idle.push_back(where);
  std::ranges::stable_sort(idle, [&](const seat& a, const seat& b) {
    const auto rank = [&](const seat& x) {
      return std::tuple{!st.draining.contains(x), st.config.seats.occupied(x), ~x.index};
    };
    return rank(a) < rank(b);
  });
  std::vector<seat> gone;
  for (const auto& where : idle)
    if (st.config.seats.members_of(group) - gone.size() > needed) gone.push_back(where);
  if (gone.empty()) return;
  auto stay = st.config.seats.all();
  for (const auto& where : gone) stay.erase(where);
  if (st.config.on_resize) st.config.on_resize(stay); // before its workers end
  for (const auto& where : gone) {
    if (const auto m = st.members.find(where); m != st.members.end()) m->second.for_good = true;
    effects.send_away(where, "its pool was scaled in");
    st.draining.erase(where);
    st.failing.erase(where);
    st.config.seats.remove(where);
  }
}

/// The size that a pool or cell can have next below its own, or below what is left of it after a
/// loss; nothing: it has none.
std::optional<uint32_t> next_lower(const membership_state& st, const resized_part& what) {
  const auto now = size_of(scheduler::sizes_of(st.config.shape), what);
  for (auto size = std::min(size_of(st.wanted, what), now); size > 0;)
    if (why_not(st, what, {--size}).empty()) return size;
  return std::nullopt;
}

/// The size that a pool can have next above its own, up to that; nothing: it has none.
std::optional<uint32_t> next_higher(const membership_state& st, worker_role role, uint32_t most) {
  for (auto size = scheduler::size_of(st.wanted, role); size < most;)
    if (why_not(st, {role}, {++size}).empty()) return size;
  return std::nullopt;
}

pool_change begin_change(membership_ptr self, const resized_part& what, const wanted_part& wanted,
                         const scale_effects& effects) {
  auto& st = self->state;
  const auto from = size_of(st.wanted, what);
  st.changes->current = pool_change{name_of(st, what),
                                    from,
                                    wanted.members,
                                    "under way",
                                    {},
                                    partition_of(st.wanted, what),
                                    wanted.partition,
                                    kv_bytes_of(st.wanted, what),
                                    wanted.kv_bytes};
  st.wanted = with_part(st.wanted, what, wanted);
  add_seats(self, group_of(st, what));
  st.changes->since = self->clock().now();
  std::vector<event_field> fields{
      {"pool", st.changes->current->pool}, {"from", from}, {"to", wanted.members}};
  add_what_else(fields, *st.changes->current);
  tell(event_kind::pool_resizing, std::move(fields));
  auto answer = *st.changes->current;
  changed(self);
  effects.consider("the pool " + text_of(answer) + " changes its size");
  return answer;
}

/// `asked`: by whoever asked for something else, which is no fault.
void end_change(membership_ptr self, const char* state, std::string reason, bool asked = false) {
  auto& st = self->state;
  auto& x = st.changes->ended[st.changes->current->pool];
  x = std::move(*st.changes->current);
  st.changes->current.reset();
  x.state = state;
  x.reason = std::move(reason);
  const std::chrono::duration<double> took = self->clock().now() - st.changes->since;
  std::vector<event_field> fields{
      {"pool", x.pool}, {"from", x.from}, {"to", x.to}, {"seconds", took.count()}};
  add_what_else(fields, x);
  if (!x.reason.empty()) fields.emplace_back("reason", x.reason);
  if (st.config.metrics)
    st.config.metrics->pool_changed(pool_of(x.pool), x.reason.empty() ? net::change_end::done
                                                     : asked          ? net::change_end::refused
                                                             : net::change_end::rolled_back);
  tell(x.reason.empty() ? event_kind::pool_resized
       : asked          ? event_kind::pool_refused
                        : event_kind::pool_rolled_back,
       std::move(fields));
}

/// The pool of the change under way keeps its size. While no other epoch is being opened only.
void roll_back(membership_ptr self, std::string why, const scale_effects& effects, bool asked) {
  auto& st = self->state;
  const auto& over = *st.changes->current;
  const auto what = *part_named(st, over.pool);
  const auto group = group_of(st, what);
  st.wanted = with_part(st.wanted, what, {over.from, over.partition, over.kv_bytes});
  std::erase_if(st.draining, [&](const auto& x) { return x.first.group() == group; });
  drop_seats(self, group, effects);
  end_change(self, "rolled back", std::move(why), asked);
  changed(self);
}

/// Whether an epoch serves that has what the change under way asks for; other pools may be short.
bool is_done(const membership_state& st) {
  if (!st.changes->current) return false;
  const auto now = scheduler::sizes_of(st.config.shape);
  return with_wanted(now, st, *part_named(st, st.changes->current->pool)) == now;
}

/// An epoch serves, and no other one is being opened.
bool is_settled(const membership_state& st) { return st.open && !st.before && !st.current; }

/// Whether a worker is to go when the pipeline has moved to the newest epoch, or has been told to
/// go already.
bool is_leaving(const membership_state& st, const seat& where) {
  return st.draining.contains(where)
         || (st.before && st.before->number_of(where) != no_part
             && st.newest.number_of(where) == no_part);
}

seat_group group_of(const membership_state& st, const pool_change& x) {
  return group_of(st, *part_named(st, x.pool));
}

/// Whether that worker has a part or KV, also where no epoch is open: the next one goes on with it.
bool is_needed(const membership_state& st, const seat& where) {
  return st.newest.has(where) || std::ranges::find(st.held, where) != st.held.end();
}

/// Why no worker that is needed can be drained at the moment; empty: it can.
std::string why_not_now(const membership_state& st) {
  if (st.changes->current) return other_change + (": " + text_of(*st.changes->current));
  return st.open ? "" : no_epoch;
}

std::chrono::seconds time_of_changes(const membership_state& st) {
  return std::chrono::duration_cast<std::chrono::seconds>(st.config.resize_timeout);
}

/// A worker has no part any more, and its process is to end: whoever comes in its place is new.
void send_off(membership_ptr self, const seat& where, const scale_effects& effects) {
  if (const auto m = self->state.members.find(where); m != self->state.members.end())
    m->second.for_good = true;
  effects.send_away(where, "it was drained");
}

/// Drains that no epoch has done in time: their workers keep their parts.
void give_up_drains(membership_ptr self) {
  auto& st = self->state;
  const auto now = self->clock().now();
  std::erase_if(st.draining, [&](const auto& x) {
    const auto& [where, since] = x;
    if (now - since < st.config.resize_timeout) return false;
    tell(event_kind::pool_refused,
         {{"pool", std::string{scheduler::to_string(where.role)}},
          {"reason", fmt::format("{} is not drained: nobody has taken its part within {} s",
                                 scheduler::to_string(where), time_of_changes(st).count())}});
    return true;
  });
}

} // namespace

caf::result<pool_change> on_resize(membership_ptr self, const pool_resize& x,
                                   const scale_effects& effects) {
  auto& st = self->state;
  const auto what = part_named(st, x.pool);
  if (!what)
    return unknown("pool", x.pool,
                   "there is no pool '" + x.pool + "'; use model, attention or prefill"
                       + (st.config.cells.empty() ? "" : ", or a cell: " + cells_of(st)));
  auto wanted = wanted_by(st, *what, x);
  const auto& current = st.changes->current;
  const bool changing = current && current->pool == x.pool;
  if (!is_new(st, *what, wanted)) return changing ? *current : as_wanted(st, *what);
  if (const auto why = why_not(st, *what, wanted); !why.empty()) return refused(st, x.pool, why);
  if (changing) {
    const auto group = group_of(st, *what);
    const bool drains = std::ranges::any_of(
        st.draining, [&](const auto& one) { return one.first.group() == group; });
    if (drains || !is_settled(st)) return refused(st, x.pool, why_not_now(st));
    roll_back(self, "another size was asked for", effects, true);
    wanted = wanted_by(st, *what, x);
    if (!is_new(st, *what, wanted)) return as_wanted(st, *what);
  }
  if (x.members != members_as_they_are) st.before_drains.erase(what->role);
  return begin_change(self, *what, wanted, effects);
}

caf::result<pool_change> on_drain(membership_ptr self, const worker_drain& x,
                                  const scale_effects& effects) {
  auto& st = self->state;
  const auto seats = seats_named(st, x.worker);
  if (seats.empty()) return nobody_to_drain(st, x.worker);
  const auto& where = seats.front();
  const auto& info = st.members.at(where).info;
  if (seats.size() > 1)
    return refused(st, info.role,
                   "several workers are named '" + x.worker + "': give a seat, " + info.seat
                       + " for example");
  if (info.here)
    return refused(st, info.role,
                   "'" + x.worker + "' is of the service's own process; change the pool's size");
  const bool leaves = is_leaving(st, where);
  const bool serves = leaves || (st.open && is_needed(st, where));
  const auto what = serves ? part_with(st, where) : resized_part{where.role};
  const auto size = size_of(st.wanted, what);
  pool_change answer{name_of(st, what), size, size, "under way", {}};
  if (leaves) { // once the pipeline has moved
    st.draining.emplace(where, self->clock().now());
    return answer;
  }
  if (!is_needed(st, where)) {
    send_off(self, where, effects);
    answer.state = "done";
    return answer;
  }
  if (auto why = why_not_now(st); !why.empty()) {
    if (!x.leaves) return refused(st, answer.pool, why);
    answer.state = ask_again;
    answer.reason = std::move(why);
    return answer;
  }
  st.draining.emplace(where, self->clock().now());
  const auto lower = next_lower(st, what);
  const auto bounds = st.config.follows.find(where.role);
  const bool follows =
      x.leaves && lower && bounds != st.config.follows.end() && *lower >= bounds->second.least;
  const auto next = follows ? std::nullopt : better_plan(st);
  // A spare takes its part, or others have room for its work.
  if (next && !has_part(next->plan, where)) {
    tell(event_kind::worker_draining, {{"seat", info.seat}, {"worker", info.name}});
    effects.consider("worker " + info.name + " is drained");
    return answer;
  }
  if (!lower) {
    st.draining.erase(where);
    return refused(st, answer.pool,
                   "no other worker can take over what '" + x.worker
                       + "' does: add one to the pool '" + answer.pool + "' first");
  }
  // One that an operator drains asks for a seat at once, and shall not get it back.
  if (x.leaves && !what.cell) st.before_drains.emplace(where.role, size);
  return begin_change(self, what, {*lower}, effects);
}

void on_balance(membership_ptr self, const pool_balance& x, const scale_effects& effects) {
  auto& st = self->state;
  if (!st.open || st.before || st.current || st.due || st.changes->current
      || x.epoch != st.newest.epoch)
    return;
  st.unequal = true;
  effects.consider("slot tables are unequally full");
}

void on_bounds(membership_state& st, const pool_bounds& x) {
  const auto role = scheduler::role_named(x.pool);
  if (!role) return;
  if (x.most > 0)
    st.config.follows[*role] = {x.least, x.most};
  else
    st.config.follows.erase(*role);
}

bool grow_for(membership_ptr self, worker_role role, const scale_effects& effects) {
  auto& st = self->state;
  if (st.changes->current) return false;
  uint32_t limit = 0;
  if (const auto found = st.config.follows.find(role); found != st.config.follows.end())
    limit = found->second.most;
  if (const auto found = st.before_drains.find(role); found != st.before_drains.end())
    limit = std::max(limit, found->second);
  const auto higher = next_higher(st, role, limit);
  if (!higher) return false;
  begin_change(self, {role}, {*higher}, effects);
  return true;
}

void finish_change(membership_ptr self, const scale_effects& effects) {
  auto& st = self->state;
  if (is_done(st)) {
    const auto group = group_of(st, *st.changes->current);
    drop_seats(self, group, effects);
    // After a loss the worker that should leave may be the one that is left. Others have no part.
    std::erase_if(st.draining, [&](const auto& x) {
      return x.first.group() == group && st.newest.has(x.first);
    });
    end_change(self, "done", {});
  }
  const auto draining = st.draining;
  for (const auto& [where, since] : draining)
    if (!st.newest.has(where)) {
      st.draining.erase(where);
      send_off(self, where, effects);
    }
  changed(self);
}

void watch_change(membership_ptr self, const scale_effects& effects) {
  auto& st = self->state;
  if (!is_settled(st)) return;
  // An epoch that was opened after a loss may have done it, too.
  const bool drained =
      std::ranges::any_of(st.draining, [&](const auto& x) { return !st.newest.has(x.first); });
  if (drained || is_done(st)) finish_change(self, effects);
  if (!st.changes->current) return give_up_drains(self);
  if (self->clock().now() - st.changes->since < st.config.resize_timeout) return;
  auto reason = fmt::format("its workers were not ready within {} s", time_of_changes(st).count());
  if (const auto missing = st.config.seats.missing(); !missing.empty())
    reason += ", missing: " + missing;
  if (!st.changes->current->reason.empty()) reason = st.changes->current->reason;
  roll_back(self, std::move(reason), effects, false);
}

} // namespace lamella::actors
