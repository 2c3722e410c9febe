#include "scheduler/slot_pool.hpp"

#include <algorithm>
#include <bit>
#include <limits>
#include <stdexcept>

namespace lamella::scheduler {

slot_pool::slot_pool(uint32_t slots) : references_(slots, 0), in_cache_(slots) {
  if (slots > 0) put_free(0, slots);
}

std::optional<std::vector<slot_run>> slot_pool::take(uint32_t slots,
                                                     std::optional<uint32_t> after) {
  if (slots > free_) return std::nullopt;
  std::vector<slot_run> taken;
  const auto keep = [&](slot_run run) {
    slots -= run.length;
    append(taken, {{run}});
  };
  if (slots > 0 && after && free_runs_.contains(*after)) keep(take_front(*after, slots));
  // Whole runs first; splinters only when nothing longer is left.
  for (auto wanted = std::min(slots, run_slots); slots > 0; wanted = std::min(slots, wanted)) {
    if (auto first = newest(wanted)) {
      keep(take_front(*first, slots));
    } else {
      wanted = wanted > 1 ? std::bit_floor(wanted - 1) : 1;
    }
  }
  return taken;
}

void slot_pool::share(std::span<const slot_run> runs) {
  for (const auto& run : runs)
    for (uint32_t i = 0; i < run.length; ++i) {
      auto& count = references_.at(run.first + i);
      if (count == 0 || count == std::numeric_limits<uint16_t>::max())
        throw std::logic_error("a slot without references, or with too many, cannot be shared");
      if (count == 1 && in_cache_[run.first + i]) --cached_;
      ++count;
    }
}

void slot_pool::cache(std::span<const slot_run> runs) {
  share(runs);
  for (const auto& run : runs)
    for (uint32_t i = 0; i < run.length; ++i) {
      if (in_cache_[run.first + i]) throw std::logic_error("a slot was cached twice");
      in_cache_[run.first + i] = true;
    }
}

void slot_pool::uncache(std::span<const slot_run> runs) {
  for (const auto& run : runs)
    for (uint32_t i = 0; i < run.length; ++i) {
      if (!in_cache_.at(run.first + i)) throw std::logic_error("a slot is not in the cache");
      in_cache_[run.first + i] = false;
      if (references_[run.first + i] == 1) --cached_;
    }
  give_back(runs);
}

void slot_pool::give_back(std::span<const slot_run> runs) {
  for (const auto& run : runs) {
    uint32_t first = run.first;
    const uint32_t end = run.first + run.length;
    for (uint32_t slot = run.first; slot < end; ++slot) {
      auto& count = references_.at(slot);
      if (count == 0) throw std::logic_error("a free slot was given back");
      if (--count > 0) {
        if (count == 1 && in_cache_[slot]) ++cached_;
        if (first < slot) put_free(first, slot - first);
        first = slot + 1;
      }
    }
    if (first < end) put_free(first, end - first);
  }
}

std::vector<slot_run> slot_pool::take_from(uint32_t first) {
  std::vector<slot_run> found;
  for (const auto& [begin, run] : free_runs_)
    if (begin + run.length > first) found.push_back({begin, run.length});
  std::vector<slot_run> taken;
  for (const auto& run : found) {
    take_front(run.first, run.length);
    const auto below = run.first < first ? first - run.first : 0;
    if (below > 0) give_back(std::vector<slot_run>{{run.first, below}});
    taken.push_back({run.first + below, run.length - below});
  }
  return taken;
}

void slot_pool::resize(uint32_t count) {
  if (count < slots()) {
    const auto gone = take_from(count);
    if (length_of(gone) != slots() - count)
      throw std::logic_error("slots that are in use cannot be taken from a pool");
  }
  const auto before = slots();
  references_.resize(count);
  in_cache_.resize(count);
  if (freed_) freed_.emplace(count);
  if (count > before) put_free(before, count - before);
}

void slot_pool::watch_freed(bool on) {
  freed_.reset();
  if (on) freed_.emplace(slots());
}

std::vector<slot_run> slot_pool::take_freed() {
  if (!freed_ || freed_->empty()) return {};
  const std::vector<slot_run> all{{0, slots()}};
  auto result = freed_->part(all, true);
  freed_->erase(result);
  return result;
}

namespace {

/// The slots below `count` that `wanted` says yes to, in order and joined.
template <class Predicate> std::vector<slot_run> runs_of(uint32_t count, Predicate wanted) {
  std::vector<slot_run> runs;
  for (uint32_t slot = 0; slot < count; ++slot)
    if (wanted(slot)) append(runs, std::vector<slot_run>{{slot, 1}});
  return runs;
}

} // namespace

std::vector<slot_run> slot_pool::used_runs() const {
  return runs_of(slots(), [this](uint32_t slot) { return references_[slot] > 0; });
}

std::vector<slot_run> slot_pool::cached_runs() const {
  return runs_of(slots(), [this](uint32_t slot) { return in_cache_[slot]; });
}

slot_pool::audit slot_pool::count() const {
  audit x;
  for (const auto& [first, run] : free_runs_) x.free += run.length;
  for (const auto n : references_) {
    x.used += n > 0 ? 1 : 0;
    x.references += n;
  }
  return x;
}

void slot_pool::put_free(uint32_t first, uint32_t length) {
  free_ += length;
  if (freed_) freed_->insert(std::vector<slot_run>{{first, length}});
  auto next = free_runs_.lower_bound(first);
  if (next != free_runs_.end() && next->first == first + length) {
    length += next->second.length;
    next = free_runs_.erase(next);
  }
  if (next != free_runs_.begin()) {
    auto previous = std::prev(next);
    if (previous->first + previous->second.length == first) {
      first = previous->first;
      length += previous->second.length;
      free_runs_.erase(previous);
    }
  }
  note(first, length);
}

/// It is the newest free run of its class.
void slot_pool::note(uint32_t first, uint32_t length) {
  free_runs_[first] = {length, ++numbers_};
  auto& stack = stacks_[std::min<size_t>(std::bit_width(length), classes) - 1];
  stack.emplace_back(first, numbers_);
  if (stack.size() > 2 * free_runs_.size() + 64)
    std::erase_if(stack, [this](const auto& x) { return !is_there(x.first, x.second); });
}

bool slot_pool::is_there(uint32_t first, uint64_t number) const {
  const auto found = free_runs_.find(first);
  return found != free_runs_.end() && found->second.number == number;
}

slot_run slot_pool::take_front(uint32_t first, uint32_t slots) {
  auto node = free_runs_.find(first);
  const auto length = std::min(slots, node->second.length);
  const auto rest = node->second.length - length;
  free_runs_.erase(node);
  free_ -= length;
  for (uint32_t i = 0; i < length; ++i) references_[first + i] = 1;
  if (rest > 0) note(first + length, rest);
  return {first, length};
}

/// The free run given back last of those in whose class all have at least `length` slots.
std::optional<uint32_t> slot_pool::newest(uint32_t length) {
  std::pair<uint32_t, uint64_t> found{0, 0};
  for (auto i = static_cast<size_t>(std::bit_width(length - 1)); i < classes; ++i) {
    auto& stack = stacks_[i];
    while (!stack.empty() && !is_there(stack.back().first, stack.back().second)) stack.pop_back();
    if (!stack.empty() && stack.back().second > found.second) found = stack.back();
  }
  return found.second > 0 ? std::optional{found.first} : std::nullopt;
}

std::vector<slot_run> prefix(std::span<const slot_run> runs, uint32_t slots) {
  std::vector<slot_run> result;
  for (const auto& run : runs) {
    if (slots == 0) break;
    const auto length = std::min(slots, run.length);
    result.push_back({run.first, length});
    slots -= length;
  }
  return result;
}

void append(std::vector<slot_run>& to, std::span<const slot_run> runs) {
  for (const auto& run : runs) {
    if (!to.empty() && to.back().first + to.back().length == run.first)
      to.back().length += run.length;
    else
      to.push_back(run);
  }
}

uint32_t length_of(std::span<const slot_run> runs) {
  uint32_t total = 0;
  for (const auto& run : runs) total += run.length;
  return total;
}

} // namespace lamella::scheduler
