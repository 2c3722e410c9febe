#include "scheduler/kv/kv_prefixes.hpp"

#include <algorithm>
#include <span>

namespace lamella::scheduler {

namespace {

using std::chrono::nanoseconds;
using tokens_view = std::span<const model::token_id>;

/// What a prompt may find: not its last position.
tokens_view wanted_of(const kv_text& text) {
  const tokens_view all{text.tokens};
  return all.first(all.size() - std::min<size_t>(all.size(), 1));
}

/// Slots without parity are not cached: their parity would never be computed.
void keep(kv_ledger& ledger, const kv_ledger::holding& held, tokens_view tokens, nanoseconds now) {
  if (ledger.settings.prefix_time.count() <= 0) return;
  if (tokens.size() > length_of(held.runs)) return;
  if (const auto& unprotected = ledger.unprotected[held.member];
      !unprotected.empty()
      && unprotected.meets(prefix(held.runs, static_cast<uint32_t>(tokens.size()))))
    return;
  ledger.prefixes[held.member].keep(ledger.pools[held.member], held.scope, tokens, held.runs, now);
}

/// Too little of the prompt is there to be worth a suffix.
bool finds_too_little(const kv_ledger& ledger, uint32_t table, const kv_text& text) {
  const uint64_t least = ledger.settings.prefix_least_percent;
  if (least == 0 || text.resumes) return false;
  const auto found = ledger.prefixes[table].look(text.scope, wanted_of(text));
  return uint64_t{100} * length_of(found) < least * text.tokens.size();
}

} // namespace

std::vector<slot_run> share_cached(kv_ledger& ledger, uint32_t table, const kv_text& text,
                                   nanoseconds now) {
  if (text.computed || finds_too_little(ledger, table, text)) return {};
  auto runs = ledger.prefixes[table].find(text.scope, wanted_of(text), now);
  ledger.pools[table].share(runs);
  return runs;
}

std::optional<uint32_t> table_with(const kv_ledger& ledger, const kv_need& need,
                                   uint32_t keep_free) {
  if (ledger.pools.size() == 1 || need.text.tokens.empty() || need.text.computed)
    return std::nullopt;
  return table_with(ledger.pools, ledger.prefixes, need.text.scope, wanted_of(need.text),
                    need.slots, keep_free);
}

void note_filled(kv_ledger& ledger, sequence_id holder, uint32_t positions, nanoseconds now) {
  const auto found = ledger.holders.find(holder);
  if (found == ledger.holders.end()) return; // it is over, or began anew
  auto& held = found->second;
  if (positions > length_of(held.runs)) return;
  held.filled = std::max(held.filled, positions);
  if (held.text && positions <= held.text->size())
    keep(ledger, held, tokens_view{*held.text}.first(positions), now);
}

void keep_written(kv_ledger& ledger, sequence_id holder, const kv_written& written,
                  nanoseconds now) {
  const auto found = ledger.holders.find(holder);
  if (found == ledger.holders.end() || written.tokens.empty()) return;
  const auto& held = found->second;
  if (!held.text || held.text->size() < written.position) return;
  auto tokens = *held.text;
  tokens.resize(written.position);
  tokens.insert(tokens.end(), written.tokens.begin(), written.tokens.end());
  keep(ledger, held, tokens, now);
}

void distrust(kv_ledger& ledger, uint32_t table, const std::vector<slot_run>& runs) {
  slot_set lost{ledger.pools[table].slots()};
  lost.insert(runs);
  ledger.prefixes[table].forget(ledger.pools[table], lost);
  for (auto& [holder, held] : ledger.holders)
    if (held.member == table && lost.meets(held.runs)) held.text.reset();
}

void distrust(kv_ledger& ledger, sequence_id holder) {
  const auto found = ledger.holders.find(holder);
  if (found == ledger.holders.end()) return;
  const auto runs = found->second.runs;
  distrust(ledger, found->second.member, runs);
}

void forget_cached(kv_ledger& ledger, const kv_takeover& takes) {
  for (uint32_t i = 0; i < ledger.pools.size(); ++i) {
    if (std::ranges::count(takes.lost, i) > 0 || std::ranges::count(takes.parity_is_new, i) > 0)
      ledger.prefixes[i].clear(ledger.pools[i]);
  }
}

void expire_cached(kv_ledger& ledger, nanoseconds now) {
  const auto before = now - ledger.settings.prefix_time;
  for (size_t i = 0; i < ledger.pools.size(); ++i)
    ledger.prefixes[i].expire(ledger.pools[i], before);
}

bool caches_some(const kv_ledger& ledger) {
  return std::ranges::any_of(ledger.prefixes, [](const auto& x) { return !x.empty(); });
}

} // namespace lamella::scheduler
