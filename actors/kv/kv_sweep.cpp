#include "actors/kv/kv_sweep.hpp"

#include "actors/protocol/parity.hpp"
#include "base/buggify.hpp"
#include "scheduler/pull_plan.hpp"

#include <algorithm>
#include <map>

namespace lamella::actors {

namespace {

/// Slots, and whose K and V they have.
using found_slots = std::map<uint32_t, kv_origin>;

/// Adds the slots of a holder's positions from `first` on that lack their parity (or do not) until
/// there are `most`; returns the position after the last one looked at.
uint32_t walk(const kv_allocator_state& st, sequence_id holder,
              const kv_allocator_state::holding& held, uint32_t first, bool unprotected,
              size_t most, found_slots& found) {
  const auto last = std::min(held.filled, scheduler::length_of(held.runs));
  if (first >= last) return first;
  std::vector<slot_run> runs;
  scheduler::append_positions(runs, held.runs, first, last - first);
  for (const auto& run : runs)
    for (auto slot = run.first; slot < run.first + run.length; ++slot, ++first) {
      if (found.size() == most) return first;
      if (st.unprotected[held.member].contains(slot) == unprotected)
        found.emplace(slot, kv_origin{holder, first});
    }
  return first;
}

} // namespace

kv_swept sweep(kv_allocator_state& st, const kv_sweep& x) {
  kv_swept result;
  if (!st.has_parity(x.table)) return result;
  result.unprotected = st.unprotected[x.table].count();
  if (x.unprotected && st.unprotected[x.table].empty()) return result;
  const auto most = buggify(buggify_point::small_sweep) ? 1 : x.slots;
  found_slots found; // one comes up once for each choice that shares it
  auto it = st.holders.lower_bound(x.from);
  for (; it != st.holders.end() && found.size() < most; ++it) {
    // What a holder of the epoch before has for good is yet to be heard.
    if (it->second.epoch != st.epoch || it->second.member != x.table) continue;
    const auto first = it->first == x.from ? x.position : 0;
    result.position = walk(st, it->first, it->second, first, x.unprotected, most, found);
    result.next = it->first;
  }
  if (found.size() < most) { // it has come to the end
    result.next = {};
    result.position = 0;
  }
  for (const auto& [slot, origin] : found) {
    scheduler::append(result.runs, std::vector<slot_run>{{slot, 1}});
    result.origins.push_back(origin);
  }
  if (result.runs.empty()) return result;
  st.pools[x.table].share(result.runs);
  st.holders[x.pin] = {x.table, result.runs, st.epoch, 0};
  st.pinned_by.insert(x.pin);
  return result;
}

void forget_behind(kv_allocator_state& st, const kv_allocator_state::holding& held) {
  auto& unprotected = st.unprotected[held.member];
  if (unprotected.empty()) return;
  const auto length = scheduler::length_of(held.runs);
  if (held.filled >= length) return;
  std::vector<slot_run> behind;
  scheduler::append_positions(behind, held.runs, held.filled, length - held.filled);
  unprotected.erase(behind);
}

void forget_free(kv_allocator_state& st, uint32_t table, const std::vector<slot_run>& runs) {
  auto& unprotected = st.unprotected[table];
  if (unprotected.empty()) return;
  for (const auto& run : runs)
    for (auto slot = run.first; slot < run.first + run.length; ++slot)
      if (st.pools[table].references(slot) == 0)
        unprotected.erase(std::vector<slot_run>{{slot, 1}});
}

uint32_t with_parity(const kv_allocator_state& st, uint32_t table) {
  return st.has_parity(table) ? st.pools[table].used() - st.unprotected[table].count() : 0;
}

} // namespace lamella::actors
