#include "scheduler/kv/kv_sweep.hpp"

#include "scheduler/pull_plan.hpp"

#include <algorithm>
#include <map>

namespace lamella::scheduler {

namespace {

/// Slots, and whose K and V they have.
using found_slots = std::map<uint32_t, kv_origin>;

/// Adds the slots of a holder's positions from `first` on that lack their parity (or do not) until
/// there are `most`; returns the position after the last one looked at.
uint32_t walk(const kv_ledger& ledger, sequence_id holder, const kv_ledger::holding& held,
              uint32_t first, bool unprotected, size_t most, found_slots& found) {
  const auto last = std::min(held.filled, length_of(held.runs));
  if (first >= last) return first;
  std::vector<slot_run> runs;
  append_positions(runs, held.runs, first, last - first);
  for (const auto& run : runs)
    for (auto slot = run.first; slot < run.first + run.length; ++slot, ++first) {
      if (found.size() == most) return first;
      if (ledger.unprotected[held.member].contains(slot) == unprotected)
        found.emplace(slot, kv_origin{holder, first});
    }
  return first;
}

} // namespace

kv_swept sweep(kv_ledger& ledger, const kv_walk& x) {
  kv_swept result;
  if (!ledger.has_parity(x.table)) return result;
  result.unprotected = ledger.unprotected[x.table].count();
  if (x.unprotected && ledger.unprotected[x.table].empty()) return result;
  found_slots found; // one comes up once for each choice that shares it
  auto it = ledger.holders.lower_bound(x.from);
  for (; it != ledger.holders.end() && found.size() < x.slots; ++it) {
    // What a holder of the epoch before has for good is yet to be heard.
    if (it->second.epoch != ledger.epoch || it->second.member != x.table) continue;
    const auto first = it->first == x.from ? x.position : 0;
    result.position = walk(ledger, it->first, it->second, first, x.unprotected, x.slots, found);
    result.next = it->first;
  }
  if (found.size() < x.slots) { // it has come to the end
    result.next = {};
    result.position = 0;
  }
  for (const auto& [slot, origin] : found) {
    append(result.runs, std::vector<slot_run>{{slot, 1}});
    result.origins.push_back(origin);
  }
  if (result.runs.empty()) return result;
  ledger.pools[x.table].share(result.runs);
  ledger.holders[x.pin] = {x.table, result.runs, ledger.epoch, 0};
  ledger.pinned_by.insert(x.pin);
  return result;
}

void forget_behind(kv_ledger& ledger, const kv_ledger::holding& held) {
  auto& unprotected = ledger.unprotected[held.member];
  if (unprotected.empty()) return;
  const auto length = length_of(held.runs);
  if (held.filled >= length) return;
  std::vector<slot_run> behind;
  append_positions(behind, held.runs, held.filled, length - held.filled);
  unprotected.erase(behind);
}

void forget_free(kv_ledger& ledger, uint32_t table, const std::vector<slot_run>& runs) {
  auto& unprotected = ledger.unprotected[table];
  if (unprotected.empty()) return;
  for (const auto& run : runs)
    for (auto slot = run.first; slot < run.first + run.length; ++slot)
      if (ledger.pools[table].references(slot) == 0)
        unprotected.erase(std::vector<slot_run>{{slot, 1}});
}

void note_pulled(kv_ledger& x, sequence_id holder, const std::vector<slot_run>& runs,
                 bool complete) {
  const auto found = x.holders.find(holder);
  if (found == x.holders.end()) return;
  auto& held = found->second;
  if (complete)
    held.filled = std::max(held.filled, length_of(runs));
  else if (x.shall_have_parity(held.member))
    x.unprotected[held.member].insert(runs);
}

} // namespace lamella::scheduler
