#include "actors/shared/recovery_watch.hpp"

#include <algorithm>

namespace lamella::actors {

void recovery_watch::lost(const std::string& role) {
  const std::lock_guard lock{mutex_};
  lost_ = role;
}

void recovery_watch::lacks(const std::string& role) {
  const std::lock_guard lock{mutex_};
  lacking_ = role;
}

std::string recovery_watch::role() const {
  const std::lock_guard lock{mutex_};
  return lacking_.empty() ? lost_ : lacking_;
}

void recovery_watch::pipeline_lost(time_point now) {
  const std::lock_guard lock{mutex_};
  if (!down_since_) down_since_ = now;
}

void recovery_watch::pipeline_back() {
  const std::lock_guard lock{mutex_};
  down_since_.reset();
}

void recovery_watch::pauses(scheduler::request_id who, time_point now, bool begun) {
  const std::lock_guard lock{mutex_};
  paused_.try_emplace(who, pause{now, begun});
}

void recovery_watch::goes_on(scheduler::request_id who) {
  const std::lock_guard lock{mutex_};
  paused_.erase(who);
}

recovery_watch::view recovery_watch::look(time_point now) const {
  const std::lock_guard lock{mutex_};
  view x;
  x.recovering = paused_.size();
  x.down = down_since_.has_value();
  auto first = down_since_.value_or(now);
  for (const auto& [who, own] : paused_)
    if (own.begun) first = std::min(first, own.since);
  x.longest = std::chrono::duration_cast<std::chrono::milliseconds>(now - first);
  x.too_long = x.longest > max_pause_.load();
  return x;
}

} // namespace lamella::actors
