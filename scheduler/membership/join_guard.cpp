#include "scheduler/membership/join_guard.hpp"

#include <algorithm>

namespace lamella::scheduler {

std::optional<join_guard::seconds> join_guard::blocked(const std::string& origin,
                                                       time_point now) const {
  const auto found = origins_.find(origin);
  if (found == origins_.end() || found->second.blocked_until <= now) return std::nullopt;
  return std::chrono::ceil<seconds>(found->second.blocked_until - now);
}

bool join_guard::issue(const std::string& nonce, time_point now) {
  std::erase_if(nonces_, [&](const auto& x) { return x.second < now; });
  if (nonces_.size() >= challenges_max) return false;
  return nonces_.emplace(nonce, now + nonce_life).second;
}

bool join_guard::redeem(const std::string& nonce, time_point now) {
  const auto node = nonces_.extract(nonce);
  return node && node.mapped() >= now;
}

void join_guard::failed(const std::string& origin, time_point now) {
  // Whoever has been quiet for a window needs no record any more.
  std::erase_if(origins_, [&](const auto& x) {
    const auto& r = x.second;
    return r.blocked_until <= now
           && (r.failures.empty() || now - r.failures.back() > failure_window);
  });
  if (origins_.size() >= origins_max && !origins_.contains(origin)) return;
  auto& r = origins_[origin];
  while (!r.failures.empty() && now - r.failures.front() > failure_window) r.failures.pop_front();
  r.failures.push_back(now);
  if (r.failures.size() < failures_max) return;
  r.blocked_until = now + block_time;
  r.failures.clear();
}

} // namespace lamella::scheduler
