#include "actors/kv/kv_allocator.hpp"

#include "actors/kv/kv_reservations.hpp"
#include "actors/kv/kv_slot_metrics.hpp"
#include "actors/kv/kv_trimming.hpp"
#include "actors/protocol/kv.hpp"
#include "actors/shared/exceptions.hpp"
#include "base/buggify.hpp"
#include "scheduler/kv/kv_adopt.hpp"
#include "scheduler/kv/kv_grants.hpp"
#include "scheduler/kv/kv_move_tables.hpp"
#include "scheduler/kv/kv_moving.hpp"
#include "scheduler/kv/kv_prefixes.hpp"
#include "scheduler/kv/kv_sweep.hpp"

#include <algorithm>

namespace lamella::actors {

namespace {

/// While anything is cached, polls periodically for entries that expired.
void look_later(kv_allocator_ptr self) {
  auto& st = self->state;
  if (!caches_some(st.ledger) || std::exchange(st.looking, true)) return;
  self->delayed_send(self,
                     std::max<caf::timespan>(st.config.prefix_time / 8, std::chrono::seconds{1}),
                     caf::tick_atom_v);
}

/// There may be more free slots than before.
void tell_of_free(kv_allocator_ptr self) {
  auto& st = self->state;
  const auto free = obtainable_slots(st.ledger);
  for (auto& waiter : std::exchange(st.waiters, {})) self->send(waiter, kv_freed{free});
  trim_later(self);
  look_later(self);
  publish(self);
}

void give_back(kv_allocator_ptr self, const std::vector<sequence_id>& holders,
               const std::vector<kv_written>& written = {}) {
  auto& ledger = self->state.ledger;
  for (size_t i = 0; i < holders.size(); ++i) {
    if (i < written.size()) keep_written(ledger, holders[i], written[i], now(self));
    release(ledger, holders[i]);
  }
  tell_of_free(self);
}

/// Whoever asked in the epoch before is gone; the holders themselves ask again.
void on_adopt(kv_allocator_ptr self, const kv_adopt& x) {
  auto& st = self->state;
  st.shards = x.shards;
  st.waiters.clear();
  trimming_in_epoch(self, !x.planned);
  const auto before = st.ledger.tables;
  adopt(st.ledger, x.epoch, x.takes);
  if (st.config.metrics) forget_members(*st.config.metrics, before, st.ledger.tables);
  if (!st.ledger.holders.empty())
    self->delayed_send(self, st.config.timeout, wake_atom_v, st.ledger.epoch);
  tell_of_free(self);
}

/// Holders of an epoch before that have not resumed their slots will not.
void on_adopted_long_ago(kv_allocator_ptr self, uint64_t epoch) {
  const auto& ledger = self->state.ledger;
  if (ledger.epoch != epoch) return;
  if (const auto gone = silent_holders(ledger); !gone.empty()) give_back(self, gone);
}

/// What can be copied together from the others of a table when a shard is lost.
caf::result<kv_inventory> on_inventory(const scheduler::kv_ledger& x, uint32_t table) {
  if (table >= x.pools.size()) return caf::make_error(ec::aborted, "no such table");
  return kv_inventory{x.unprotected[table].part(x.pools[table].used_runs(), false)};
}

caf::result<kv_swept> on_sweep(kv_allocator_ptr self, const kv_sweep& x) {
  auto& ledger = self->state.ledger;
  if (x.epoch != ledger.epoch || x.walk.table >= ledger.pools.size())
    return caf::make_error(ec::aborted);
  if (ledger.holders.contains(x.walk.pin)) give_back(self, {x.walk.pin});
  auto walk = x.walk;
  if (buggify(buggify_point::small_sweep)) walk.slots = 1;
  return sweep(ledger, walk);
}

caf::result<bool> on_protection(kv_allocator_ptr self, const kv_protection& x) {
  auto& ledger = self->state.ledger;
  if (x.epoch != ledger.epoch || x.table >= ledger.pools.size())
    return caf::make_error(ec::aborted);
  auto& unprotected = ledger.unprotected[x.table];
  x.have ? unprotected.erase(x.runs) : unprotected.insert(x.runs);
  if (!x.have) distrust(ledger, x.table, x.runs);
  publish(self);
  return true;
}

void on_pulled(kv_allocator_ptr self, const kv_pulled& x) {
  if (x.epoch != self->state.ledger.epoch) return;
  note_pulled(self->state.ledger, x.holder, x.runs, x.complete);
  publish(self);
}

caf::result<kv_move_plan> on_move_begin(kv_allocator_ptr self, const kv_move_begin& x) {
  auto& ledger = self->state.ledger;
  if (x.epoch != ledger.epoch) return caf::make_error(ec::aborted);
  if (!begin_move(ledger, x.slots, x.level)) return caf::make_error(ec::kv_exhausted);
  publish(self);
  return kv_move_plan{loads_of_move(ledger)};
}

caf::result<bool> on_move_done(kv_allocator_ptr self, const kv_move_done& x) {
  if (x.epoch != self->state.ledger.epoch) return caf::make_error(ec::aborted);
  note_copied(self->state.ledger);
  return true;
}

void on_move_abort(kv_allocator_ptr self, const kv_move_abort& x) {
  if (x.epoch != self->state.ledger.epoch) return;
  abort_move(self->state.ledger);
  tell_of_free(self);
}

kv_usage usage(const kv_allocator_state& st) {
  auto result = usage_of(st.ledger);
  result.wanted = st.wanted;
  return result;
}

} // namespace

kv_allocator_actor::behavior_type kv_allocator(kv_allocator_ptr self, kv_allocator_config config) {
  end_on_exceptions(self);
  auto& st = self->state;
  st.config = std::move(config);
  st.ledger = {{st.config.prefix_time, st.config.prefix_least_percent}, st.config.tables};
  publish(self);
  return {
      [self](const kv_reserve& x) { return on_reserve(self, x); },
      [self](const kv_release& x) {
        if (is_current(self->state, x.epoch)) give_back(self, x.holders, x.written);
      },
      [self](const kv_filled& x) {
        auto& ledger = self->state.ledger;
        if (x.epoch == ledger.epoch) note_filled(ledger, x.holder, x.positions, now(self));
        look_later(self);
      },
      [self](const kv_doubt& x) {
        if (x.epoch == self->state.ledger.epoch) distrust(self->state.ledger, x.holder);
      },
      [self](const kv_adopt& x) { on_adopt(self, x); },
      [self](status_atom) -> caf::result<kv_usage> { return usage(self->state); },
      [self](const kv_inventory_ask& x) { return on_inventory(self->state.ledger, x.table); },
      [self](const kv_sweep& x) { return on_sweep(self, x); },
      [self](const kv_protection& x) { return on_protection(self, x); },
      [self](const kv_pulled& x) { on_pulled(self, x); },
      [self](const kv_move_begin& x) { return on_move_begin(self, x); },
      [self](const kv_move_ask& x) -> caf::result<kv_move_piece> {
        if (x.epoch != self->state.ledger.epoch) return caf::make_error(ec::aborted);
        return next_of_move(self->state.ledger, x.slots);
      },
      [self](const kv_move_done& x) { return on_move_done(self, x); },
      [self](const kv_move_abort& x) { on_move_abort(self, x); },
      [self](const kv_balance_ask& x) -> caf::result<kv_balance> {
        if (x.epoch != self->state.ledger.epoch) return caf::make_error(ec::aborted);
        return balance_of(self->state.ledger);
      },
      [self](wake_atom) { trim(self, on_trimmed); },
      [self](caf::tick_atom) {
        self->state.looking = false;
        expire_cached(self->state.ledger, now(self));
        tell_of_free(self);
      },
      [self](wake_atom, uint64_t epoch) { on_adopted_long_ago(self, epoch); },
  };
}

} // namespace lamella::actors
