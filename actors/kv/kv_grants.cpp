#include "actors/kv/kv_grants.hpp"

#include "actors/kv/kv_prefixes.hpp"
#include "actors/kv/kv_sweep.hpp"
#include "actors/protocol/kv.hpp"
#include "actors/protocol/parity.hpp"
#include "scheduler/kv_balance.hpp"

#include <algorithm>

namespace lamella::actors {

namespace {

using std::chrono::nanoseconds;

/// The table of a holder: where it already is, where its source is, where most of its text is, else
/// the one with the smallest share in use that has room.
uint32_t place(const kv_allocator_state& st, const kv_need& need, uint32_t keep_free) {
  if (auto own = st.holders.find(need.holder); own != st.holders.end()) return own->second.member;
  if (auto source = st.holders.find(need.share_from);
      need.share_tokens > 0 && source != st.holders.end())
    return source->second.member;
  // A table that goes takes no newcomer.
  const auto takes = [&](uint32_t table) { return !st.moving || st.moving->slots_of(table) > 0; };
  if (const auto alike = table_with(st, need, keep_free); alike && takes(*alike)) return *alike;
  scheduler::kv_loads now;
  for (uint32_t table = 0; table < st.pools.size(); ++table) {
    const auto& pool = st.pools[table];
    now.slots.push_back(takes(table) ? pool.slots() : 0);
    now.used.push_back(pool.used() - pool.cached());
  }
  return scheduler::emptiest_for(now, uint64_t{need.slots} + keep_free);
}

/// What it holds already, where that is to be kept: otherwise it begins.
kv_allocator_state::holding* kept(kv_allocator_state& st, const kv_need& need) {
  const auto own = st.holders.find(need.holder);
  if (need.mode != reserve_mode::resume || own == st.holders.end()) return nullptr;
  const auto& taken_over = own->second.taken_over;
  return taken_over && *taken_over < need.filled ? nullptr : &own->second;
}

/// The beginning that it has in common with others, shared; nothing if there is no such holder.
std::optional<std::vector<slot_run>> share(kv_allocator_state& st, uint32_t table,
                                           const kv_need& need, nanoseconds now) {
  if (need.share_tokens > 0) {
    const auto source = st.holders.find(need.share_from);
    if (source == st.holders.end()) return std::nullopt;
    auto runs = scheduler::prefix(source->second.runs, need.share_tokens);
    st.pools[table].share(runs);
    return runs;
  }
  if (need.mode == reserve_mode::extend || kept(st, need)) return std::vector<slot_run>{};
  return share_cached(st, table, need.text, now);
}

/// What it will hold, for the prefix cache.
void note_text(kv_allocator_state& st, const kv_need& need, const kv_holding& granted) {
  auto& held = st.holders.at(need.holder);
  if (!need.text.tokens.empty()) {
    held.scope = need.text.scope;
    held.text = std::make_shared<const std::vector<token_id>>(need.text.tokens);
    held.filled = std::max(held.filled, granted.cached);
    if (!granted.kept && !need.text.computed && st.config.metrics)
      st.config.metrics->prefix_cache(need.text.tokens.size(), granted.cached);
  } else if (need.share_tokens > 0) {
    const auto& source = st.holders.at(need.share_from);
    held.scope = source.scope;
    held.text = source.text;
  }
}

} // namespace

std::optional<kv_holding> grant(kv_allocator_state& st, const kv_need& need, uint32_t keep_free,
                                nanoseconds now) {
  const bool begins = need.mode != reserve_mode::extend && !kept(st, need);
  if (begins) release(st, need.holder); // also what an epoch has not taken over whole
  const auto table = place(st, need, keep_free);
  auto& pool = st.pools[table];
  kv_holding result{need.holder, table, {}};
  auto slots = need.slots;
  auto shared = share(st, table, need, now);
  if (!shared) return std::nullopt;
  if (const auto* own = kept(st, need)) {
    result.kept = true;
    slots -= std::min(slots, scheduler::length_of(own->runs));
  } else if (need.share_tokens == 0) {
    result.cached = scheduler::length_of(*shared);
    slots -= std::min(slots, result.cached);
  }
  if (slots > 0 && pool.free() + pool.cached() < uint64_t{slots} + keep_free) {
    pool.give_back(*shared);
    return std::nullopt;
  }
  st.prefixes[table].make_room(pool, slots);
  auto& held = st.holders[need.holder];
  held.member = table;
  held.epoch = st.epoch;
  held.taken_over.reset();
  note_text(st, need, result);
  if (result.kept || need.mode == reserve_mode::extend) held.filled = need.filled;
  std::optional<uint32_t> after;
  if (!held.runs.empty()) after = held.runs.back().first + held.runs.back().length;
  const auto taken = pool.take(slots, after);
  result.runs = std::move(*shared);
  result.runs.insert(result.runs.end(), taken->begin(), taken->end());
  scheduler::append(held.runs, result.runs);
  if (result.kept) {
    forget_behind(st, held);
    result.runs = held.runs;
  }
  return result;
}

void release(kv_allocator_state& st, sequence_id holder) {
  auto node = st.holders.extract(holder);
  if (!node) return;
  const auto& held = node.mapped();
  st.pools[held.member].give_back(held.runs);
  forget_free(st, held.member, held.runs);
}

} // namespace lamella::actors
