#include "actors/kv/kv_allocator.hpp"

#include "actors/kv/kv_grants.hpp"
#include "actors/kv/kv_move_tables.hpp"
#include "actors/kv/kv_moving.hpp"
#include "actors/kv/kv_prefixes.hpp"
#include "actors/kv/kv_sweep.hpp"
#include "actors/protocol/exceptions.hpp"
#include "actors/protocol/kv.hpp"
#include "actors/protocol/moves.hpp"
#include "actors/protocol/parity.hpp"
#include "base/buggify.hpp"
#include "base/failpoint.hpp"

#include <algorithm>

#include <malloc.h>

namespace lamella::actors {

namespace {

using allocator_ptr = kv_allocator_actor::stateful_pointer<kv_allocator_state>;

/// How long a pool stands empty before its memory goes back to the system.
constexpr std::chrono::seconds trim_after{1};
/// So few slots are not worth it: the canary of an idle service uses one every few seconds, and the
/// system would clear a huge page per layer for it each time.
constexpr uint32_t worth_trimming = 64;

std::chrono::nanoseconds now(allocator_ptr self) { return self->clock().now().time_since_epoch(); }

/// Per table, the slots in use for nobody: those of holders that have not spoken in this epoch, and
/// any when there are no holders. What choices share counts for each of them, but no slot twice for
/// the pool. Cost: O(runs of those holders).
std::vector<uint32_t> orphans_of(const kv_allocator_state& st) {
  std::vector<uint32_t> orphans(st.pools.size());
  for (const auto& [holder, held] : st.holders)
    if (held.epoch < st.epoch) orphans[held.member] += scheduler::length_of(held.runs);
  for (size_t i = 0; i < orphans.size(); ++i) {
    const auto used = st.pools[i].used() - st.pools[i].cached();
    orphans[i] = st.holders.empty() ? used : std::min(orphans[i], used);
  }
  return orphans;
}

/// Slots of the members that hold parity; all of a table lack it while its member is missing.
void publish_parity(const kv_allocator_state& st) {
  const auto& list = st.config.tables.list;
  uint32_t lag = 0;
  bool some = false;
  for (uint32_t i = 0; i < std::min(st.pools.size(), list.size()); ++i) {
    if (!st.shall_have_parity(i)) continue;
    net::slot_counts slots;
    slots.free = st.pools[i].free();
    slots.cached = st.pools[i].cached();
    slots.parity = with_parity(st, i) - (st.has_parity(i) ? slots.cached : 0);
    slots.used = st.pools[i].used() - slots.cached - slots.parity;
    st.config.metrics->set_kv_slots(list[i].parity, slots);
    lag += slots.used;
    some = true;
  }
  if (some) st.config.metrics->set_parity_lag(st.config.pool, lag);
}

void publish(allocator_ptr self) {
  const auto& st = self->state;
  if (!st.config.metrics) return;
  auto& metrics = *st.config.metrics;
  metrics.set_mailbox_depth("allocator", self->mailbox().size());
  const auto orphans = orphans_of(st);
  const auto tell = [&](const std::string& worker, size_t table) {
    net::slot_counts slots;
    slots.free = st.pools[table].free();
    slots.orphan = orphans[table];
    slots.cached = st.pools[table].cached();
    slots.used = st.pools[table].used() - slots.cached - slots.orphan;
    metrics.set_kv_slots(worker, slots);
  };
  // While an epoch is adopted there may be tables that have no name yet.
  const auto& tables = st.config.tables;
  for (size_t i = 0; i < std::min(st.pools.size(), tables.list.size()); ++i)
    for (const auto& worker : tables.list[i].members) tell(worker, i);
  publish_parity(st);
}

/// Everything counted slot by slot, independently of the counters of the tables.
kv_usage usage_of(const kv_allocator_state& st) {
  kv_usage usage;
  for (const auto& pool : st.pools) {
    const auto counted = pool.count();
    usage.slots.push_back(pool.slots());
    usage.used.push_back(counted.used - pool.cached());
    usage.free += counted.free;
    usage.references += counted.references;
  }
  for (const auto& [holder, held] : st.holders) usage.held += scheduler::length_of(held.runs);
  for (const auto& cache : st.prefixes) usage.held += cache.slots();
  usage.wanted = st.wanted;
  usage.cached = cached(st);
  for (uint32_t i = 0; i < st.pools.size(); ++i) // nothing cached lacks its own
    if (st.has_parity(i)) usage.parity += with_parity(st, i) - st.pools[i].cached();
  for (auto n : orphans_of(st)) usage.orphan += n;
  return usage;
}

uint32_t used(const kv_allocator_state& st) {
  uint32_t total = 0;
  for (const auto& pool : st.pools) total += pool.used();
  return total;
}

/// Only where another holder will free slots, which notifies the waiters.
bool acts_full(const kv_allocator_state& st, const kv_reserve& x) {
  const auto own = std::count_if(x.needs.begin(), x.needs.end(), [&](const auto& need) {
    return st.holders.contains(need.holder);
  });
  return st.holders.size() > static_cast<size_t>(own) && buggify(buggify_point::slots_short);
}

/// Slots that others of the same question want behind what this holder gets: they follow it to its
/// table, and need room there.
uint32_t shares_from(const kv_reserve& x, sequence_id holder) {
  uint32_t slots = 0;
  for (const auto& need : x.needs)
    if (need.share_tokens > 0 && need.share_from == holder) slots += need.slots;
  return slots;
}

caf::expected<kv_grant> reserve(allocator_ptr self, const kv_reserve& x,
                                const caf::strong_actor_ptr& asker) {
  auto& st = self->state;
  if (x.epoch != st.epoch) {
    if (st.config.metrics) st.config.metrics->fenced(net::fence::epoch);
    return caf::make_error(ec::aborted, "of epoch " + std::to_string(x.epoch));
  }
  kv_grant result;
  const bool full = acts_full(st, x);
  for (const auto& need : x.needs) {
    // A need that follows another one of the same holder is not used by anybody, so taking back is
    // giving back all that the holder has got from this call.
    auto holding =
        full ? std::nullopt : grant(st, need, x.keep_free + shares_from(x, need.holder), now(self));
    if (!holding) {
      for (const auto& done : result.holdings) {
        auto& held = st.holders.at(done.holder);
        st.pools[done.member].give_back(done.runs);
        auto keep = scheduler::length_of(held.runs) - scheduler::length_of(done.runs);
        held.runs = scheduler::prefix(held.runs, keep);
        if (held.runs.empty()) st.holders.erase(done.holder);
      }
      if (x.tell && asker) {
        st.waiters.push_back(caf::actor_cast<kv_waiter_actor>(asker));
        st.wanted = x.keep_free;
        for (const auto& asked : x.needs) st.wanted += asked.slots;
      }
      return caf::make_error(ec::kv_exhausted);
    }
    result.holdings.push_back(std::move(*holding));
  }
  if (x.tell) st.wanted = 0;
  if (used(st) >= worth_trimming) st.trimmed = false;
  publish(self);
  return result;
}

/// While anything is cached, polls periodically for entries that expired.
void look_later(allocator_ptr self) {
  auto& st = self->state;
  const bool some =
      std::any_of(st.prefixes.begin(), st.prefixes.end(), [](const auto& x) { return !x.empty(); });
  if (!some || std::exchange(st.looking, true)) return;
  self->delayed_send(self, std::max<caf::timespan>(st.config.prefix_time / 8, trim_after),
                     caf::tick_atom_v);
}

/// There may be more free slots than before.
void tell_of_free(allocator_ptr self) {
  auto& st = self->state;
  uint32_t free = 0;
  for (const auto& pool : st.pools) free += pool.free() + pool.cached();
  for (auto& waiter : std::exchange(st.waiters, {})) self->send(waiter, kv_freed{free});
  if (used(st) == 0 && !st.trimmed) {
    ++st.trim_ticket;
    self->delayed_send(self, trim_after, wake_atom_v);
  }
  look_later(self);
  publish(self);
}

void give_back(allocator_ptr self, const std::vector<sequence_id>& holders,
               const std::vector<kv_written>& written = {}) {
  auto& st = self->state;
  for (size_t i = 0; i < holders.size(); ++i) {
    if (i < written.size()) keep_written(st, holders[i], written[i], now(self));
    release(st, holders[i]);
  }
  tell_of_free(self);
}

void on_tick(allocator_ptr self) {
  auto& st = self->state;
  st.looking = false;
  const auto before = now(self) - st.config.prefix_time;
  for (size_t i = 0; i < st.pools.size(); ++i) st.prefixes[i].expire(st.pools[i], before);
  tell_of_free(self);
}

/// Gives back what the holders have that `lost` says yes to.
template <class Predicate> void drop(allocator_ptr self, Predicate lost) {
  std::vector<sequence_id> gone;
  for (const auto& [holder, held] : self->state.holders)
    if (lost(held)) gone.push_back(holder);
  if (!gone.empty()) give_back(self, gone);
}

/// What has no parity was lost with the shard that was made of it.
bool lost_with_it(const kv_allocator_state& st, const kv_adopt& x,
                  const kv_allocator_state::holding& held) {
  if (std::ranges::count(x.rebuilt, held.member) > 0
      && st.unprotected[held.member].meets(held.runs))
    return true;
  if (!x.tables.list.empty()
      && (held.member >= x.tables.list.size() || x.tables.list[held.member].slots == 0))
    return true;
  return std::ranges::count(x.lost, held.member) > 0;
}

/// Whoever asked in the epoch before is gone; the holders themselves ask again.
void adopt(allocator_ptr self, const kv_adopt& x) {
  auto& st = self->state;
  st.epoch = x.epoch;
  st.shards = x.shards;
  st.waiters.clear();
  // A shard of the epoch before may still give memory back that one of this epoch has, too.
  if (!x.planned) {
    st.trimming = 0;
    ++st.trim_round;
  }
  for (auto& late : std::exchange(st.waiting_for_trim, {}))
    late.promise.deliver(caf::make_error(ec::aborted));
  for (const auto pin : std::exchange(st.pinned_by, {})) release(st, pin);
  x.moved ? finish_move(st) : abort_move(st);
  drop(self, [&](const auto& held) { return lost_with_it(st, x, held); });
  forget_cached(st, x);
  if (!x.tables.list.empty()) resize_tables(st, x.tables);
  for (const auto table : x.parity_is_new)
    st.unprotected[table].insert(st.pools[table].used_runs());
  if (!st.holders.empty()) self->delayed_send(self, st.config.timeout, wake_atom_v, st.epoch);
  publish(self);
}

/// What can be copied together from the others of a table when a shard is lost.
caf::result<kv_inventory> inventory(const kv_allocator_state& st, uint32_t table) {
  if (table >= st.pools.size()) return caf::make_error(ec::aborted, "no such table");
  return kv_inventory{st.unprotected[table].part(st.pools[table].used_runs(), false)};
}

caf::result<kv_swept> on_sweep(allocator_ptr self, const kv_sweep& x) {
  auto& st = self->state;
  if (x.epoch != st.epoch || x.table >= st.pools.size()) return caf::make_error(ec::aborted);
  if (st.holders.contains(x.pin)) give_back(self, {x.pin});
  return sweep(st, x);
}

caf::result<bool> on_protection(allocator_ptr self, const kv_protection& x) {
  auto& st = self->state;
  if (x.epoch != st.epoch || x.table >= st.pools.size()) return caf::make_error(ec::aborted);
  auto& unprotected = st.unprotected[x.table];
  x.have ? unprotected.erase(x.runs) : unprotected.insert(x.runs);
  if (!x.have) distrust(st, x.table, x.runs);
  publish(self);
  return true;
}

/// Its holder goes on with them only once they are complete, and asks for more after that.
void on_pulled(allocator_ptr self, const kv_pulled& x) {
  auto& st = self->state;
  const auto held = st.holders.find(x.holder);
  if (x.epoch != st.epoch || held == st.holders.end()) return; // it is over, or was given up
  if (x.complete)
    held->second.filled = std::max(held->second.filled, scheduler::length_of(x.runs));
  else if (st.shall_have_parity(held->second.member))
    st.unprotected[held->second.member].insert(x.runs);
  publish(self);
}

caf::result<bool> on_move_begin(allocator_ptr self, const kv_move_begin& x) {
  auto& st = self->state;
  if (x.epoch != st.epoch) return caf::make_error(ec::aborted);
  if (!begin_move(st, x)) return caf::make_error(ec::kv_exhausted);
  publish(self);
  return true;
}

caf::result<kv_move_piece> on_move_ask(allocator_ptr self, const kv_move_ask& x) {
  if (x.epoch != self->state.epoch) return caf::make_error(ec::aborted);
  return next_of_move(self->state, x.slots);
}

caf::result<bool> on_move_done(allocator_ptr self, const kv_move_done& x) {
  if (x.epoch != self->state.epoch) return caf::make_error(ec::aborted);
  note_copied(self->state);
  return true;
}

void on_move_abort(allocator_ptr self, const kv_move_abort& x) {
  if (x.epoch != self->state.epoch) return;
  abort_move(self->state);
  tell_of_free(self);
}

/// A second has passed since some moment at which the pool was empty.
void trim(allocator_ptr self) {
  auto& st = self->state;
  if (--st.trim_ticket > 0 || used(st) > 0 || st.trimmed || st.trimming > 0) return;
  st.trimmed = true;
  st.trimming = static_cast<uint32_t>(st.shards.size());
  const auto done = [self, round = ++st.trim_round] {
    if (self->state.trim_round != round || --self->state.trimming > 0) return;
    malloc_trim(0); // what requests have freed goes back as well
    for (auto& x : std::exchange(self->state.waiting_for_trim, {})) {
      auto answer = reserve(self, x.question, x.asker);
      if (answer)
        x.promise.deliver(std::move(*answer));
      else
        x.promise.deliver(std::move(answer.error()));
    }
  };
  for (auto& shard : st.shards)
    self->request(shard, std::chrono::seconds{10}, kv_trim{})
        .then([done](bool) { done(); }, [done](caf::error&) { done(); });
}

} // namespace

kv_allocator_actor::behavior_type
kv_allocator(kv_allocator_actor::stateful_pointer<kv_allocator_state> self,
             kv_allocator_config config) {
  end_on_exceptions(self);
  auto& st = self->state;
  st.config = std::move(config);
  for (const auto& table : st.config.tables.list) {
    st.pools.emplace_back(table.slots);
    st.prefixes.emplace_back();
    st.unprotected.emplace_back(table.slots);
  }
  publish(self);
  return {
      [self](const kv_reserve& x) -> caf::result<kv_grant> {
        failpoint_or_throw(failpoint::allocator_reserve);
        const auto& asker = self->current_sender();
        if (self->state.trimming == 0) {
          auto answer = reserve(self, x, asker);
          if (answer) return std::move(*answer);
          return std::move(answer.error());
        }
        auto promise = self->make_response_promise<kv_grant>();
        self->state.waiting_for_trim.push_back({x, asker, promise});
        return promise;
      },
      [self](const kv_release& x) {
        if (x.epoch == self->state.epoch)
          give_back(self, x.holders, x.written);
        else if (self->state.config.metrics)
          self->state.config.metrics->fenced(net::fence::epoch);
      },
      [self](const kv_filled& x) {
        on_filled(self->state, x, now(self));
        look_later(self);
      },
      [self](const kv_doubt& x) { on_doubt(self->state, x); },
      [self](const kv_adopt& x) { adopt(self, x); },
      [self](status_atom) -> caf::result<kv_usage> { return usage_of(self->state); },
      [self](const kv_inventory_ask& x) { return inventory(self->state, x.table); },
      [self](const kv_sweep& x) { return on_sweep(self, x); },
      [self](const kv_protection& x) { return on_protection(self, x); },
      [self](const kv_pulled& x) { on_pulled(self, x); },
      [self](const kv_move_begin& x) { return on_move_begin(self, x); },
      [self](const kv_move_ask& x) { return on_move_ask(self, x); },
      [self](const kv_move_done& x) { return on_move_done(self, x); },
      [self](const kv_move_abort& x) { on_move_abort(self, x); },
      [self](const kv_balance_ask& x) -> caf::result<kv_balance> {
        if (x.epoch != self->state.epoch) return caf::make_error(ec::aborted);
        return balance_of(self->state);
      },
      [self](wake_atom) { trim(self); },
      [self](caf::tick_atom) { on_tick(self); },
      [self](wake_atom, uint64_t epoch) {
        if (self->state.epoch == epoch)
          drop(self, [&](const auto& held) { return held.epoch < epoch; });
      },
  };
}

} // namespace lamella::actors
