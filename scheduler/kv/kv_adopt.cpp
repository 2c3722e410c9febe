#include "scheduler/kv/kv_adopt.hpp"

#include "scheduler/kv/kv_grants.hpp"
#include "scheduler/kv/kv_moving.hpp"
#include "scheduler/kv/kv_prefixes.hpp"

#include <algorithm>
#include <utility>

namespace lamella::scheduler {

namespace {

/// What has no parity was lost with the shard that was made of it.
bool is_lost(const kv_ledger& x, const kv_takeover& takes, const kv_ledger::holding& held) {
  if (std::ranges::count(takes.rebuilt, held.member) > 0
      && x.unprotected[held.member].meets(held.runs))
    return true;
  if (const auto& list = takes.tables.list;
      !list.empty() && (held.member >= list.size() || list[held.member].slots == 0))
    return true;
  return std::ranges::count(takes.lost, held.member) > 0;
}

} // namespace

void adopt(kv_ledger& x, uint64_t epoch, const kv_takeover& takes) {
  x.epoch = epoch;
  for (const auto pin : std::exchange(x.pinned_by, {})) release(x, pin);
  takes.moved ? finish_move(x) : abort_move(x);
  std::vector<sequence_id> lost;
  for (const auto& [holder, held] : x.holders)
    if (is_lost(x, takes, held)) lost.push_back(holder);
  for (const auto holder : lost) release(x, holder);
  forget_cached(x, takes);
  if (!takes.tables.list.empty()) resize_tables(x, takes.tables);
  for (const auto table : takes.parity_is_new)
    x.unprotected[table].insert(x.pools[table].used_runs());
}

std::vector<sequence_id> silent_holders(const kv_ledger& x) {
  std::vector<sequence_id> result;
  for (const auto& [holder, held] : x.holders)
    if (held.epoch < x.epoch) result.push_back(holder);
  return result;
}

} // namespace lamella::scheduler
