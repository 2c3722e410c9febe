/// The prefix cache in a simulated run, the live one: a trace tells of prompts which blocks of 512
/// tokens they begin with, and not what they say.
#include "scheduler/planner/simulator_run.hpp"

#include "scheduler/kv/kv_grants.hpp"
#include "scheduler/kv/kv_prefixes.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <stdexcept>
#include <string>

namespace lamella::scheduler::decoding {

namespace {

constexpr uint32_t block_tokens = 512;

/// Blocks whose tokens can all be told apart.
constexpr size_t blocks_most =
    (uint64_t{std::numeric_limits<model::token_id>::max()} + 1) / block_tokens;

} // namespace

/// Numbers the blocks of the trace from 0 on: their ids may be any, and a token's is made of a
/// block's. Throws std::invalid_argument for more than tokens can be made of.
void run::number_blocks() {
  if (design_.prefix_cache_s <= 0) return;
  for (const auto& x : trace_)
    blocks_.insert(blocks_.end(), x.prefix_blocks.begin(), x.prefix_blocks.end());
  std::sort(blocks_.begin(), blocks_.end());
  blocks_.erase(std::unique(blocks_.begin(), blocks_.end()), blocks_.end());
  if (blocks_.size() > blocks_most)
    throw std::invalid_argument{"the prompts of the trace begin with "
                                + std::to_string(blocks_.size())
                                + " different blocks, and a prefix cache is simulated with at most "
                                + std::to_string(blocks_most)};
}

std::chrono::nanoseconds run::clock() const {
  return std::chrono::nanoseconds{std::llround(now_ * 1e9)};
}

/// Tokens that are equal where the trace says so; none where it says nothing.
const std::vector<model::token_id>& run::text_of(uint32_t index) {
  if (text_.first == index) return text_.second;
  text_.first = index;
  auto& text = text_.second;
  text.clear();
  if (design_.prefix_cache_s <= 0) return text;
  const auto& x = trace_[index];
  for (const auto id : x.prefix_blocks) {
    const auto block = std::lower_bound(blocks_.begin(), blocks_.end(), id) - blocks_.begin();
    for (uint32_t i = 0; i < block_tokens && text.size() < x.prompt_tokens; ++i)
      text.push_back(static_cast<model::token_id>(block) * block_tokens + i);
  }
  return text;
}

/// Was it the last one tried, and no pool has more room now? Looking for its beginning again, in
/// every iteration, would take most of the time.
bool run::refused_before(const admission_entry& entry) {
  if (design_.prefix_cache_s <= 0) return false;
  std::vector<uint32_t> room;
  for (const auto& p : kv_.pools) room.push_back(p.free() + p.cached());
  const bool same = tried_.first == entry.first && tried_.second.size() == room.size();
  const bool more =
      !same || !std::equal(room.begin(), room.end(), tried_.second.begin(), std::less_equal<>{});
  tried_ = {entry.first, std::move(room)};
  return !more;
}

/// An empty one, of as many tables as the design has pools.
kv_ledger run::ledger_of(uint32_t slots) const {
  kv_tables tables;
  for (uint32_t i = 0; i < design_.pools(); ++i) tables.list.push_back({{}, slots});
  return {{std::chrono::nanoseconds{std::llround(design_.prefix_cache_s * 1e9)}}, tables};
}

/// The pool that has slots for it now: of its batch's server, or the one that the live allocator
/// would choose. Nothing when there are too few, or too few would be left for what runs to grow.
std::optional<uint32_t> run::take_slots(const admission_entry& entry, uint32_t batch) {
  const auto index = index_of_id(entry.first);
  expire_cached(kv_, clock());
  const kv_need need{.holder = entry.first,
                     .slots = entry.slots,
                     .mode = reserve_mode::fresh,
                     .text = {0, text_of(index)}};
  const auto table = design_.disaggregated() ? table_for(kv_, need, kept_) : server_of(batch);
  const auto& slots = kv_.pools[table];
  const auto holding =
      grant_in(kv_, table, need, slots.used() > slots.cached() ? kept_ : 0, clock());
  if (!holding) return std::nullopt;
  states_[index].cached = holding->cached;
  if (!need.text.tokens.empty()) {
    result_.prefix_queries += trace_[index].prompt_tokens;
    result_.prefix_hits += holding->cached;
  }
  return table;
}

/// Its K and V are there.
void run::keep_prompt(uint32_t index) {
  const auto tokens = static_cast<uint32_t>(text_of(index).size());
  if (tokens > 0) note_filled(kv_, id_of(index), tokens, clock());
}

} // namespace lamella::scheduler::decoding
