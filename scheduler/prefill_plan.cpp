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

} // namespace

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

void prefill_plan::put_in_order(nanoseconds now) {
  const auto key = [&](const entry& x) {
    const bool waits = now - x.since < timeout;
    return std::tuple{waits, waits ? slack_bucket(x.deadline - now) : 0, waits ? x.left() : 0};
  };
  // They lie in the order they came but for what earlier calls did: time of arrival decides first.
  std::stable_sort(rebuilds_.begin(), rebuilds_.end(), [&](const auto& a, const auto& b) {
    const auto of_a = key(a), of_b = key(b);
    return of_a != of_b ? of_a < of_b : a.since < b.since;
  });
}

std::vector<prefill_piece> prefill_plan::next(uint32_t sequences_max, nanoseconds now,
                                              const may_begin& begins) {
  std::vector<prefill_piece> pieces;
  bool held_back = false;
  const auto take = [&](entries& list, uint64_t room, size_t pieces_max) {
    for (auto it = list.begin(); it != list.end() && room > 0 && pieces.size() < pieces_max;) {
      if (!it->begun) {
        it->begun = !held_back && (!begins || begins(it->sequence, it->tokens));
        held_back |= !it->begun;
      }
      if (!it->begun) {
        ++it;
        continue;
      }
      const auto count = static_cast<uint32_t>(std::min<uint64_t>(room, it->left()));
      const bool last = count == it->left();
      pieces.push_back({it->sequence, it->done, count, last});
      room -= count;
      it->done += count;
      it = last ? list.erase(it) : it + 1;
    }
    return room;
  };
  put_in_order(now);
  // What new prompts do not use of their share is for rebuilds, and the other way round.
  const uint64_t share = uint64_t{chunk_tokens_} * (100 - rebuild_percent_) / 100;
  const auto kept = rebuilds_.empty() ? 0 : std::min(left_in(fresh_), std::max<uint64_t>(share, 1));
  const bool both = kept > 0 && sequences_max > 1 && chunk_tokens_ > 1;
  const auto room = take(rebuilds_, chunk_tokens_ - (both ? kept : 0), sequences_max - both);
  take(fresh_, room + (both ? kept : 0), sequences_max);
  return pieces;
}

uint64_t prefill_plan::left_in(const entries& list) {
  uint64_t total = 0;
  for (const auto& x : list) total += x.left();
  return total;
}

} // namespace lamella::scheduler
