#include "actors/kv/kv_slot_metrics.hpp"

#include "actors/protocol/kv.hpp"

#include <algorithm>
#include <set>

namespace lamella::actors {

namespace {

/// Slots of the members that hold parity; all of a table lack it while its member is missing.
void publish_parity(net::metrics& metrics, const std::string& pool, const scheduler::kv_ledger& x) {
  const auto& list = x.tables.list;
  uint32_t lag = 0;
  bool some = false;
  for (uint32_t i = 0; i < std::min(x.pools.size(), list.size()); ++i) {
    if (!x.shall_have_parity(i)) continue;
    net::slot_counts slots;
    slots.free = x.pools[i].free();
    slots.cached = x.pools[i].cached();
    slots.parity = with_parity(x, i) - (x.has_parity(i) ? slots.cached : 0);
    slots.used = x.pools[i].used() - slots.cached - slots.parity;
    metrics.set_kv_slots(list[i].parity, slots);
    lag += slots.used;
    some = true;
  }
  if (some) metrics.set_parity_lag(pool, lag);
}

void publish_slots(net::metrics& metrics, const std::string& pool, const scheduler::kv_ledger& x) {
  const auto orphans = orphans_of(x);
  // While an epoch is adopted there may be tables that have no name yet.
  for (size_t i = 0; i < std::min(x.pools.size(), x.tables.list.size()); ++i) {
    net::slot_counts slots;
    slots.free = x.pools[i].free();
    slots.orphan = orphans[i];
    slots.cached = x.pools[i].cached();
    slots.used = x.pools[i].used() - slots.cached - slots.orphan;
    for (const auto& worker : x.tables.list[i].members) metrics.set_kv_slots(worker, slots);
  }
  publish_parity(metrics, pool, x);
}

std::set<std::string> names_of(const scheduler::kv_tables& x) {
  std::set<std::string> names;
  for (const auto& table : x.list) {
    names.insert(table.members.begin(), table.members.end());
    names.insert(table.parity);
  }
  names.erase(std::string{});
  return names;
}

} // namespace

void publish(kv_allocator_ptr self) {
  const auto& st = self->state;
  if (!st.config.metrics) return;
  st.config.metrics->set_mailbox_depth("allocator", self->mailbox().size());
  publish_slots(*st.config.metrics, st.config.pool, st.ledger);
}

void forget_members(net::metrics& metrics, const scheduler::kv_tables& before,
                    const scheduler::kv_tables& now) {
  const auto stay = names_of(now);
  for (const auto& name : names_of(before))
    if (!stay.contains(name)) metrics.set_kv_slots(name, {});
}

} // namespace lamella::actors
