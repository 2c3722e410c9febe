#include "scheduler/kv/kv_grants.hpp"

#include "scheduler/kv/kv_prefixes.hpp"
#include "scheduler/kv/kv_sweep.hpp"
#include "scheduler/kv_balance.hpp"

#include <algorithm>

namespace lamella::scheduler {

namespace {

using std::chrono::nanoseconds;

/// What it holds already, where that is to be kept: otherwise it begins.
kv_ledger::holding* kept(kv_ledger& ledger, const kv_need& need) {
  const auto own = ledger.holders.find(need.holder);
  if (need.mode != reserve_mode::resume || own == ledger.holders.end()) return nullptr;
  const auto& taken_over = own->second.taken_over;
  return taken_over && *taken_over < need.filled ? nullptr : &own->second;
}

/// The beginning that it has in common with others, shared; nothing if there is no such holder.
std::optional<std::vector<slot_run>> share(kv_ledger& ledger, uint32_t table, const kv_need& need,
                                           nanoseconds now) {
  if (need.share_tokens > 0) {
    const auto source = ledger.holders.find(need.share_from);
    if (source == ledger.holders.end()) return std::nullopt;
    auto runs = prefix(source->second.runs, need.share_tokens);
    ledger.pools[table].share(runs);
    return runs;
  }
  if (need.mode == reserve_mode::extend || kept(ledger, need)) return std::vector<slot_run>{};
  return share_cached(ledger, table, need.text, now);
}

/// What it will hold, for the prefix cache.
void note_text(kv_ledger& ledger, const kv_need& need, const kv_holding& granted) {
  auto& held = ledger.holders.at(need.holder);
  if (!need.text.tokens.empty()) {
    held.scope = need.text.scope;
    held.text = std::make_shared<const std::vector<model::token_id>>(need.text.tokens);
    held.filled = std::max(held.filled, granted.cached);
  } else if (need.share_tokens > 0) {
    const auto& source = ledger.holders.at(need.share_from);
    held.scope = source.scope;
    held.text = source.text;
  }
}

/// Slots that other needs of the same question take in the table of this holder: they share its
/// first slots, so that theirs must fit there.
uint32_t shares_from(const std::vector<kv_need>& needs, sequence_id holder) {
  uint32_t slots = 0;
  for (const auto& need : needs)
    if (need.share_tokens > 0 && need.share_from == holder) slots += need.slots;
  return slots;
}

/// A need that follows another one of the same holder is not used by anybody, so taking back is
/// giving back all that the holder has got from this question.
void take_back(kv_ledger& ledger, const std::vector<kv_holding>& granted) {
  for (const auto& done : granted) {
    auto& held = ledger.holders.at(done.holder);
    ledger.pools[done.member].give_back(done.runs);
    const auto keep = length_of(held.runs) - length_of(done.runs);
    held.runs = prefix(held.runs, keep);
    if (held.runs.empty()) ledger.holders.erase(done.holder);
  }
}

} // namespace

uint32_t table_for(const kv_ledger& ledger, const kv_need& need, uint32_t keep_free) {
  if (auto own = ledger.holders.find(need.holder); own != ledger.holders.end())
    return own->second.member;
  if (auto source = ledger.holders.find(need.share_from);
      need.share_tokens > 0 && source != ledger.holders.end())
    return source->second.member;
  // A table that goes takes no newcomer.
  const auto takes = [&](uint32_t table) {
    return !ledger.moving || ledger.moving->slots_of(table) > 0;
  };
  if (const auto alike = table_with(ledger, need, keep_free); alike && takes(*alike)) return *alike;
  kv_loads now;
  for (uint32_t table = 0; table < ledger.pools.size(); ++table) {
    const auto& pool = ledger.pools[table];
    now.slots.push_back(takes(table) ? pool.slots() : 0);
    now.used.push_back(pool.used() - pool.cached());
  }
  return nearest_for(now, uint64_t{need.slots} + keep_free, need.slots, need.near);
}

std::optional<kv_holding> grant_in(kv_ledger& ledger, uint32_t table, const kv_need& need,
                                   uint32_t keep_free, nanoseconds now) {
  auto& pool = ledger.pools[table];
  kv_holding result{need.holder, table, {}};
  auto slots = need.slots;
  auto shared = share(ledger, table, need, now);
  if (!shared) return std::nullopt;
  if (const auto* own = kept(ledger, need)) {
    result.kept = true;
    const auto had = length_of(own->runs);
    slots -= std::min(slots, had);
    // What is there is enough to go on with, and grows in its batch as before.
    if (had > need.filled && pool.free() + pool.cached() < uint64_t{slots} + keep_free) slots = 0;
  } else if (need.share_tokens == 0) {
    result.cached = length_of(*shared);
    slots -= std::min(slots, result.cached);
  }
  if (slots > 0 && pool.free() + pool.cached() < uint64_t{slots} + keep_free) {
    pool.give_back(*shared);
    return std::nullopt;
  }
  ledger.prefixes[table].make_room(pool, slots);
  auto& held = ledger.holders[need.holder];
  held.member = table;
  held.epoch = ledger.epoch;
  held.taken_over.reset();
  note_text(ledger, need, result);
  if (result.kept || need.mode == reserve_mode::extend) held.filled = need.filled;
  std::optional<uint32_t> after;
  if (!held.runs.empty()) after = held.runs.back().first + held.runs.back().length;
  const auto taken = pool.take(slots, after);
  result.runs = std::move(*shared);
  result.runs.insert(result.runs.end(), taken->begin(), taken->end());
  append(held.runs, result.runs);
  if (result.kept) {
    forget_behind(ledger, held);
    result.runs = held.runs;
  }
  return result;
}

std::optional<std::vector<kv_holding>> reserve(kv_ledger& ledger, const std::vector<kv_need>& needs,
                                               uint32_t keep_free, nanoseconds now) {
  // What an epoch has not taken over whole goes first: choices of one request that start again
  // need the slots that their own leftovers hold.
  for (const auto& need : needs)
    if (need.mode != reserve_mode::extend && !kept(ledger, need)) release(ledger, need.holder);
  std::vector<kv_holding> granted;
  for (const auto& need : needs) {
    const auto room = keep_free + shares_from(needs, need.holder);
    auto holding = grant_in(ledger, table_for(ledger, need, room), need, room, now);
    if (!holding) {
      take_back(ledger, granted);
      return std::nullopt;
    }
    granted.push_back(std::move(*holding));
  }
  return granted;
}

void release(kv_ledger& ledger, sequence_id holder) {
  auto node = ledger.holders.extract(holder);
  if (!node) return;
  const auto& held = node.mapped();
  ledger.pools[held.member].give_back(held.runs);
  forget_free(ledger, held.member, held.runs);
}

} // namespace lamella::scheduler
