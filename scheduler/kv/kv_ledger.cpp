#include "scheduler/kv/kv_ledger.hpp"

#include <algorithm>
#include <utility>

namespace lamella::scheduler {

kv_ledger::kv_ledger(const kv_ledger_settings& s, kv_tables t) : settings{s}, tables{std::move(t)} {
  for (const auto& table : tables.list) {
    pools.emplace_back(table.slots);
    prefixes.emplace_back();
    unprotected.emplace_back(table.slots);
  }
}

uint32_t used_slots(const kv_ledger& x) {
  uint32_t total = 0;
  for (const auto& pool : x.pools) total += pool.used();
  return total;
}

uint32_t obtainable_slots(const kv_ledger& x) {
  uint32_t total = 0;
  for (const auto& pool : x.pools) total += pool.free() + pool.cached();
  return total;
}

std::vector<uint32_t> orphans_of(const kv_ledger& x) {
  std::vector<uint32_t> orphans(x.pools.size());
  for (const auto& [holder, held] : x.holders)
    if (held.epoch < x.epoch) orphans[held.member] += length_of(held.runs);
  for (size_t i = 0; i < orphans.size(); ++i) {
    const auto used = x.pools[i].used() - x.pools[i].cached();
    orphans[i] = x.holders.empty() ? used : std::min(orphans[i], used);
  }
  return orphans;
}

kv_usage usage_of(const kv_ledger& x) {
  kv_usage usage;
  for (const auto& pool : x.pools) {
    const auto counted = pool.count();
    usage.slots.push_back(pool.slots());
    usage.used.push_back(counted.used - pool.cached());
    usage.cached += pool.cached();
    usage.free += counted.free;
    usage.references += counted.references;
  }
  for (const auto& [holder, held] : x.holders) usage.held += length_of(held.runs);
  for (const auto& cache : x.prefixes) usage.held += cache.slots();
  for (uint32_t i = 0; i < x.pools.size(); ++i) // nothing cached lacks its own
    if (x.has_parity(i)) usage.parity += with_parity(x, i) - x.pools[i].cached();
  for (const auto n : orphans_of(x)) usage.orphan += n;
  return usage;
}

uint32_t with_parity(const kv_ledger& x, uint32_t table) {
  return x.has_parity(table) ? x.pools[table].used() - x.unprotected[table].count() : 0;
}

} // namespace lamella::scheduler
