#include "scheduler/membership/suspects.hpp"

#include <algorithm>

namespace lamella::scheduler {

suspects::leave suspects::leave_of(request_id x) const {
  if (!hunting()) return leave::with_others;
  if (groups_.front().members.contains(x)) return leave::in_test;
  return strict_ || is_suspect(x) ? leave::wait : leave::with_others;
}

bool suspects::is_suspect(request_id x) const {
  return std::ranges::any_of(groups_, [&](const group& g) { return g.members.contains(x); });
}

uint32_t suspects::ends_of(request_id x) const {
  const auto found = ends_.find(x);
  return found == ends_.end() ? 0 : found->second;
}

/// One group of one, or two of many.
void suspects::add_halves(std::deque<group>& to, const std::set<request_id>& members,
                          bool paired) const {
  if (members.size() < 2) {
    if (!members.empty()) to.push_back({members, false});
    return;
  }
  const auto middle = std::next(members.begin(), static_cast<ptrdiff_t>(members.size() / 2));
  to.push_back({{members.begin(), middle}, paired});
  to.push_back({{middle, members.end()}, false});
}

std::optional<request_id> suspects::on_end(std::span<const in_flight> flights) {
  std::map<request_id, uint32_t> there;
  for (const auto& x : flights) {
    const auto [found, added] = there.emplace(x.request, x.tokens);
    if (!added) found->second = std::min(found->second, x.tokens);
  }
  for (const auto& [x, tokens] : there) ++ends_[x];
  if (there.size() == 1) {
    const auto [x, tokens] = *there.begin();
    const auto before = alone_at_.find(x);
    if (before != alone_at_.end()
        && std::max(before->second, tokens) - std::min(before->second, tokens) <= 1) {
      // Its group is not clean, so nothing is known of the other half.
      if (hunting() && groups_.front().members.contains(x)) groups_.front().paired = false;
      remove(x);
      end_clean_tests();
      return x;
    }
    alone_at_[x] = tokens;
  }
  std::set<request_id> in_test, others;
  for (const auto& [x, tokens] : there)
    (hunting() && groups_.front().members.contains(x) ? in_test : others).insert(x);
  if (!in_test.empty()) on_end_in_test(in_test, !others.empty());
  add_suspects(others);
  return std::nullopt;
}

void suspects::on_end_in_test(const std::set<request_id>& in_test, bool others_too) {
  begin_turn();
  auto& front = groups_.front();
  if (others_too) { // it may have been one of them: the test counts for nothing
    strict_ = true;
    return;
  }
  front.paired = false;
  if (front.members.size() == 1) return; // it needs a second end
  auto rest = std::move(front.members);
  for (auto x : in_test) rest.erase(x);
  groups_.pop_front();
  std::deque<group> first;
  add_halves(first, in_test, true);
  if (!rest.empty()) first.push_back({std::move(rest), false});
  groups_.insert(groups_.begin(), first.begin(), first.end());
}

void suspects::add_suspects(const std::set<request_id>& others) {
  std::set<request_id> fresh;
  for (auto x : others)
    if (ends_.at(x) >= ends_to_suspect && !is_suspect(x)) fresh.insert(x);
  if (!hunting()) begin_turn();
  add_halves(groups_, fresh, false);
}

bool suspects::on_tokens(request_id x, uint32_t tokens) {
  if (!hunting() || !groups_.front().members.contains(x)) return false;
  const auto first = first_tokens_.emplace(x, tokens).first->second;
  if (tokens < first + clean_tokens) return false;
  return clean_.insert(x).second && end_clean_tests();
}

bool suspects::forget(request_id x) {
  // If it left before it was clean, it may be what killed the worker, and not the other half.
  if (hunting() && groups_.front().members.contains(x) && !clean_.contains(x))
    groups_.front().paired = false;
  remove(x);
  return end_clean_tests();
}

bool suspects::excuse(request_id x) {
  if (!is_suspect(x)) return false;
  const bool ended = forget(x);
  ends_[x] = ends_to_suspect - 1;
  return ended;
}

void suspects::remove(request_id x) {
  ends_.erase(x);
  alone_at_.erase(x);
  first_tokens_.erase(x);
  clean_.erase(x);
  for (size_t i = 0; i < groups_.size(); ++i) {
    groups_[i].members.erase(x);
    if (i > 0 && groups_[i].members.empty()) groups_[i - 1].paired = false;
  }
  for (size_t i = groups_.size(); i-- > 1;)
    if (groups_[i].members.empty()) groups_.erase(groups_.begin() + static_cast<ptrdiff_t>(i));
}

bool suspects::end_clean_tests() {
  bool ended = false;
  while (hunting()) {
    const auto front = groups_.front();
    if (!std::ranges::includes(clean_, front.members)) break;
    ended = true;
    for (auto x : front.members) {
      ends_.erase(x);
      alone_at_.erase(x);
    }
    groups_.pop_front();
    begin_turn();
    if (!front.paired || !hunting()) continue;
    // A member of the other half it must be: that half need not be tested as a whole.
    std::deque<group> halves;
    add_halves(halves, groups_.front().members, true);
    groups_.pop_front();
    groups_.insert(groups_.begin(), halves.begin(), halves.end());
  }
  strict_ = strict_ && hunting();
  return ended;
}

void suspects::begin_turn() {
  first_tokens_.clear();
  clean_.clear();
}

} // namespace lamella::scheduler
