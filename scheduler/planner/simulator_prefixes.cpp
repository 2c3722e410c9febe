/// The prefix cache in a simulated run, the live one: a trace tells of prompts which blocks of 512
/// tokens they begin with, and not what they say.
#include "scheduler/planner/simulator_run.hpp"

#include <algorithm>
#include <cmath>
#include <functional>

namespace lamella::scheduler::decoding {

namespace {

constexpr uint32_t block_tokens = 512;

} // namespace

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
  for (const auto block : x.prefix_blocks)
    for (uint32_t i = 0; i < block_tokens && text.size() < x.prompt_tokens; ++i)
      text.push_back(block * block_tokens + i);
  return text;
}

/// Was it the last one tried, and no pool has more room now? Looking for its beginning again, in
/// every iteration, would take most of the time.
bool run::refused_before(const admission_entry& entry) {
  if (design_.prefix_cache_s <= 0) return false;
  std::vector<uint32_t> room;
  for (const auto& p : pools_) room.push_back(p.free() + p.cached());
  const bool same = tried_.first == entry.first && tried_.second.size() == room.size();
  const bool more =
      !same || !std::equal(room.begin(), room.end(), tried_.second.begin(), std::less_equal<>{});
  tried_ = {entry.first, std::move(room)};
  return !more;
}

std::optional<uint32_t> run::table_with(const admission_entry& entry) {
  const auto& text = text_of(index_of_id(entry.first));
  if (text.empty()) return std::nullopt;
  return scheduler::table_with(pools_, prefixes_, 0, text, entry.slots, kept_);
}

/// The slots of the beginning that others had, and free ones for the rest; nothing when there are
/// too few, or too few would be left for what runs to grow.
std::optional<std::vector<slot_run>> run::take_slots(const admission_entry& entry, uint32_t pool) {
  const auto index = index_of_id(entry.first);
  auto& slots = pools_[pool];
  auto& cache = prefixes_[pool];
  cache.expire(slots,
               clock() - std::chrono::nanoseconds{std::llround(design_.prefix_cache_s * 1e9)});
  const auto kept = slots.used() > slots.cached() ? kept_ : 0;
  // The last token of a prompt is always computed.
  const std::span text{text_of(index)};
  auto runs = cache.find(0, text.first(text.size() - std::min<size_t>(text.size(), 1)), clock());
  slots.share(runs);
  const auto found = length_of(runs);
  if (uint64_t{slots.free()} + slots.cached() < entry.slots - found + kept) {
    slots.give_back(runs);
    return std::nullopt;
  }
  cache.make_room(slots, entry.slots - found);
  const auto taken = slots.take(entry.slots - found);
  append(runs, *taken);
  states_[index].cached = found;
  if (!text.empty()) {
    result_.prefix_queries += trace_[index].prompt_tokens;
    result_.prefix_hits += found;
  }
  return runs;
}

/// Its K and V are there.
void run::keep_prompt(uint32_t index) {
  const auto& s = states_[index];
  const auto& text = text_of(index);
  if (!text.empty()) prefixes_[s.pool].keep(pools_[s.pool], 0, text, s.runs, clock());
}

} // namespace lamella::scheduler::decoding
