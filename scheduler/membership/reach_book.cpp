#include "scheduler/membership/reach_book.hpp"

#include <algorithm>

namespace lamella::scheduler {

void reach_book::sits(const seat& who, bool able) { known_[who].able = able; }

void reach_book::left(const seat& who) {
  known_.erase(who);
  for (auto& [other, x] : known_) {
    x.views.erase(who);
    // The number goes on for whoever sits there next.
    if (const auto found = x.torn.find(who); found != x.torn.end()) found->second.when.clear();
  }
}

void reach_book::told(const seat& by, const std::vector<reach_view>& views, time_point now) {
  const auto found = known_.find(by);
  if (found == known_.end()) return;
  auto& x = found->second;
  if (!x.heard || now - *x.heard > silence) x.since = now;
  x.heard = now;
  x.views.clear();
  for (const auto& view : views) x.views[view.peer] = view;
}

std::set<failed_pair> reach_book::failed(time_point now) const {
  const auto there = [&](const record& x) {
    return x.able && x.heard && now - *x.heard <= silence && *x.heard - *x.since >= failing_needed_;
  };
  std::set<failed_pair> result;
  bool some_may = false;
  milliseconds longest{0};
  for (const auto& [by, x] : known_) {
    if (!there(x)) continue;
    for (const auto& [peer, view] : x.views) {
      const auto other = known_.find(peer);
      if (view.failing.count() == 0 || other == known_.end() || !there(other->second)) continue;
      // What was said before the peer went on after a silence counts for nothing.
      if (*x.heard - *other->second.since < failing_needed_) continue;
      some_may = some_may || view.failing < failing_needed_;
      longest = std::max(longest, view.failing);
      if (view.failing >= failing_needed_) result.insert(std::minmax(by, peer));
    }
  }
  if (some_may && longest < 2 * failing_needed_) result.clear();
  return result;
}

void reach_book::torn(const seat& by, const seat& peer, uint32_t links, time_point now) {
  const auto found = known_.find(by);
  if (found == known_.end() || !known_.contains(peer)) return;
  auto& [told, when] = found->second.torn[peer];
  const auto more = links > told ? links - told : 0;
  told = links;
  when.insert(when.end(), std::min<size_t>(more, torn_needed), now);
  while (when.size() > torn_needed) when.pop_front();
}

std::set<failed_pair> reach_book::torn_again(time_point now) const {
  std::map<failed_pair, size_t> count;
  for (const auto& [by, x] : known_)
    for (const auto& [peer, y] : x.torn)
      count[std::minmax(by, peer)] += static_cast<size_t>(std::ranges::count_if(
          y.when, [&](const auto when) { return now - when <= torn_window; }));
  std::map<seat, size_t> of;
  std::set<failed_pair> result;
  for (const auto& [pair, times] : count) {
    if (times < 2) continue;
    result.insert(pair);
    of[pair.first] += times, of[pair.second] += times;
  }
  const bool enough =
      std::ranges::any_of(of, [](const auto& x) { return x.second >= torn_needed; });
  return enough ? result : std::set<failed_pair>{};
}

bool reach_book::answers(const seat& by, const seat& peer) const {
  const auto& views = known_.at(by).views;
  const auto found = views.find(peer);
  return found != views.end() && found->second.answers;
}

bool reach_book::connects(const seat& by, const seat& peer) const {
  return peer.role == worker_role::attention
         || (replicas_meet_ && by.role == worker_role::model && peer.role == worker_role::model);
}

bool reach_book::doubtful() const {
  return std::ranges::any_of(known_, [](const auto& entry) {
    return std::ranges::any_of(entry.second.views,
                               [](const auto& x) { return x.second.failing.count() > 0; });
  });
}

bool reach_book::proven(const seat& who, const std::set<seat>& fenced, time_point now) const {
  const auto found = known_.find(who);
  if (found == known_.end()) return false;
  if (!found->second.able) return true;
  if (!found->second.heard) return false;
  return std::ranges::all_of(known_, [&](const auto& entry) {
    const auto& [other, x] = entry;
    if (other == who || !x.able || fenced.contains(other)) return true;
    if (!x.heard || now - *x.heard > silence) return true;
    return (!connects(who, other) || answers(who, other))
           && (!connects(other, who) || answers(other, who));
  });
}

void fence_rest::fenced(time_point now) {
  const bool anew = !newest_ || now - *newest_ > forgotten_after;
  rest_ = anew ? first : std::min(2 * rest_, most);
  newest_ = now;
}

} // namespace lamella::scheduler
