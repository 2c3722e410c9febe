#include "actors/kv/kv_prefixes.hpp"

#include "actors/protocol/kv.hpp"

#include <algorithm>
#include <span>

namespace lamella::actors {

namespace {

using std::chrono::nanoseconds;
using tokens_view = std::span<const token_id>;

/// What a prompt may find: not its last position.
tokens_view wanted_of(const kv_text& text) {
  const tokens_view all{text.tokens};
  return all.first(all.size() - std::min<size_t>(all.size(), 1));
}

/// Slots without parity are not cached: their parity would never be computed.
void keep(kv_allocator_state& st, const kv_allocator_state::holding& held, tokens_view tokens,
          nanoseconds now) {
  if (st.config.prefix_time.count() <= 0) return;
  if (tokens.size() > scheduler::length_of(held.runs)) return;
  if (const auto& unprotected = st.unprotected[held.member];
      !unprotected.empty()
      && unprotected.meets(scheduler::prefix(held.runs, static_cast<uint32_t>(tokens.size()))))
    return;
  st.prefixes[held.member].keep(st.pools[held.member], held.scope, tokens, held.runs, now);
}

/// Too little of the prompt is there to be worth a suffix.
bool finds_too_little(const kv_allocator_state& st, uint32_t table, const kv_text& text) {
  const uint64_t least = st.config.prefix_least_percent;
  if (least == 0) return false;
  const auto found = st.prefixes[table].look(text.scope, wanted_of(text));
  return uint64_t{100} * scheduler::length_of(found) < least * text.tokens.size();
}

} // namespace

std::vector<slot_run> share_cached(kv_allocator_state& st, uint32_t table, const kv_text& text,
                                   nanoseconds now) {
  if (text.computed || finds_too_little(st, table, text)) return {};
  auto runs = st.prefixes[table].find(text.scope, wanted_of(text), now);
  st.pools[table].share(runs);
  return runs;
}

std::optional<uint32_t> table_with(const kv_allocator_state& st, const kv_need& need,
                                   uint32_t keep_free) {
  if (st.pools.size() == 1 || need.text.tokens.empty() || need.text.computed) return std::nullopt;
  return scheduler::table_with(st.pools, st.prefixes, need.text.scope, wanted_of(need.text),
                               need.slots, keep_free);
}

void on_filled(kv_allocator_state& st, const kv_filled& x, nanoseconds now) {
  const auto found = st.holders.find(x.holder);
  if (x.epoch != st.epoch || found == st.holders.end()) return; // it is over, or began anew
  auto& held = found->second;
  if (x.positions > scheduler::length_of(held.runs)) return;
  held.filled = std::max(held.filled, x.positions);
  if (held.text && x.positions <= held.text->size())
    keep(st, held, tokens_view{*held.text}.first(x.positions), now);
}

void keep_written(kv_allocator_state& st, sequence_id holder, const kv_written& written,
                  nanoseconds now) {
  const auto found = st.holders.find(holder);
  if (found == st.holders.end() || written.tokens.empty()) return;
  const auto& held = found->second;
  if (!held.text || held.text->size() < written.position) return;
  auto tokens = *held.text;
  tokens.resize(written.position);
  tokens.insert(tokens.end(), written.tokens.begin(), written.tokens.end());
  keep(st, held, tokens, now);
}

void distrust(kv_allocator_state& st, uint32_t table, const std::vector<slot_run>& runs) {
  scheduler::slot_set lost{st.pools[table].slots()};
  lost.insert(runs);
  st.prefixes[table].forget(st.pools[table], lost);
  for (auto& [holder, held] : st.holders)
    if (held.member == table && lost.meets(held.runs)) held.text.reset();
}

void on_doubt(kv_allocator_state& st, const kv_doubt& x) {
  const auto found = st.holders.find(x.holder);
  if (x.epoch != st.epoch || found == st.holders.end()) return;
  const auto runs = found->second.runs;
  distrust(st, found->second.member, runs);
}

void forget_cached(kv_allocator_state& st, const kv_adopt& x) {
  for (uint32_t i = 0; i < st.pools.size(); ++i) {
    if (std::ranges::count(x.lost, i) > 0 || std::ranges::count(x.parity_is_new, i) > 0)
      st.prefixes[i].clear(st.pools[i]);
  }
}

uint32_t cached(const kv_allocator_state& st) {
  uint32_t total = 0;
  for (const auto& pool : st.pools) total += pool.cached();
  return total;
}

} // namespace lamella::actors
