#include "scheduler/prefill_plan.hpp"

#include <algorithm>
#include <tuple>

namespace lamella::scheduler {

namespace {

/// Deadlines are compared roughly, so that lengths still count: 0 is nearest.
uint32_t slack_bucket(std::chrono::nanoseconds left) {
  using std::chrono::seconds;
  return left < seconds{10} ? 0 : left < seconds{60} ? 1 : 2;
}

uint64_t percent_of(uint64_t all, uint32_t percent) {
  return all / 100 * percent + all % 100 * percent / 100;
}

/// The most tokens from `position` on whose prefill_work is at most `work`, up to `most`.
uint32_t tokens_within(uint64_t work, uint32_t position, uint32_t most, uint32_t positions) {
  uint32_t least = 0;
  while (least < most) {
    const auto middle = least + (most - least + 1) / 2;
    if (prefill_work(position, middle, positions) <= work)
      least = middle;
    else
      most = middle - 1;
  }
  return least;
}

} // namespace

uint64_t prefill_plan::waiting_work(uint32_t positions) const {
  uint64_t work = 0;
  for (const auto* list : {&fresh_, &rebuilds_})
    for (const auto& x : *list)
      work += prefill_work(x.done, x.left(), positions) + (x.scored ? x.left() : 0);
  return work;
}

uint64_t prefill_plan::begun_tokens() const {
  uint64_t tokens = 0;
  for (const auto* list : {&fresh_, &rebuilds_})
    for (const auto& x : *list)
      if (x.begun) tokens += x.left();
  return tokens;
}

std::vector<sequence_id> prefill_plan::unbegun() const {
  std::vector<sequence_id> all;
  for (const auto* list : {&rebuilds_, &fresh_})
    for (const auto& x : *list)
      if (!x.begun) all.push_back(x.sequence);
  return all;
}

bool prefill_plan::remove(sequence_id sequence) {
  const auto drop = [&](entries& list) {
    const auto found = std::find_if(list.begin(), list.end(),
                                    [&](const auto& x) { return x.sequence == sequence; });
    if (found == list.end()) return false;
    list.erase(found);
    return true;
  };
  return drop(rebuilds_) || drop(fresh_);
}

void prefill_plan::put_in_order(const prefill_limits& limits) {
  const auto now = limits.now;
  const auto key = [&](const entry& x) {
    const bool waits = now - x.since < timeout;
    return std::tuple{waits, waits ? slack_bucket(x.deadline - now) : 0, waits ? x.left() : 0};
  };
  // They lie in the order they came but for what earlier calls did: time of arrival decides first.
  std::stable_sort(rebuilds_.begin(), rebuilds_.end(), [&](const auto& a, const auto& b) {
    const auto of_a = key(a), of_b = key(b);
    return of_a != of_b ? of_a < of_b : a.since < b.since;
  });
  if (order_ == prompt_order::fcfs) return;
  const auto turn = [&](const entry& x) {
    const auto work = static_cast<double>(prefill_work(x.done, x.left(), limits.positions));
    return static_cast<double>(x.since.count()) + stretch * limits.work_ns * work;
  };
  std::stable_sort(fresh_.begin(), fresh_.end(),
                   [&](const auto& a, const auto& b) { return turn(a) < turn(b); });
}

uint32_t prefill_plan::fitting(const entry& x, const room& left, bool beside_ended) const {
  const auto wanted = static_cast<uint32_t>(std::min<uint64_t>(left.tokens, x.left()));
  const auto whole = tokens_within(left.work, x.done, wanted, left.positions);
  const auto least = std::min(wanted, left.tokens_least);
  if (order_ == prompt_order::fcfs || !beside_ended || whole == x.left())
    return std::max(least, whole);
  return std::max(
      least, tokens_within(std::min(left.work, left.work_beside), x.done, wanted, left.positions));
}

std::vector<prefill_piece> prefill_plan::next(const prefill_limits& limits,
                                              const may_begin& begins) {
  std::vector<prefill_piece> pieces;
  bool held_back = false, ended = false; // a prompt that may not start; one that ends here
  uint64_t work = 0;
  auto scored_left = limits.scored_rows;
  const auto take = [&](entries& list, room left, size_t pieces_max) {
    for (auto it = list.begin();
         it != list.end() && left.tokens > 0 && pieces.size() < pieces_max;) {
      if (!it->begun) {
        it->begun = !held_back && (!begins || begins(it->sequence, it->tokens));
        held_back |= !it->begun;
      }
      if (!it->begun || (it->scored && scored_left == 0)) {
        ++it;
        continue;
      }
      auto count = fitting(*it, left, ended);
      if (count == 0) break;
      if (it->scored) count = std::min(count, scored_left);
      const bool last = count == it->left();
      const auto cost = prefill_work(it->done, count, limits.positions) + (it->scored ? count : 0);
      ended |= last;
      if (it->scored) scored_left -= count;
      pieces.push_back({it->sequence, it->done, count, last, it->scored});
      work += cost;
      left.work -= std::min(left.work, cost);
      left.tokens -= count;
      left.tokens_least -= std::min(left.tokens_least, count);
      it->done += count;
      it = last ? list.erase(it) : it + 1;
    }
    return left.tokens;
  };
  put_in_order(limits);
  // What new prompts do not use of their share is for rebuilds, and the other way round.
  const auto share = percent_of(chunk_tokens_, 100 - rebuild_percent_);
  const auto kept = rebuilds_.empty() ? 0 : std::min(left_in(fresh_), std::max<uint64_t>(share, 1));
  const bool both = kept > 0 && limits.sequences > 1 && chunk_tokens_ > 1;
  const auto beside = limits.work / 4;
  const auto work_kept = both ? percent_of(limits.work, 100 - rebuild_percent_) : 0;
  const auto tokens = take(rebuilds_,
                           {chunk_tokens_ - (both ? kept : 0), limits.work - work_kept, beside,
                            tokens_least, limits.positions},
                           limits.sequences - both);
  take(fresh_,
       {tokens + (both ? kept : 0), limits.work - std::min(limits.work, work), beside,
        both || pieces.empty() ? tokens_least : 0, limits.positions},
       limits.sequences);
  return pieces;
}

uint64_t prefill_plan::left_in(const entries& list) {
  uint64_t total = 0;
  for (const auto& x : list) total += x.left();
  return total;
}

} // namespace lamella::scheduler
