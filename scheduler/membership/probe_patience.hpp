/// How long a worker that says nothing may go on saying nothing (reliability A1).
#pragma once

#include "scheduler/membership/seats.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <deque>
#include <map>

namespace lamella::scheduler {

/// Every worker is asked how it is, again and again. One that does not answer in its half of the
/// patience is suspected and asked once more; one that does not answer then either is given up.
/// Twice, because whoever asks may have stood still itself: then the first answers are late.
///
/// A false alarm costs an iteration where a worker has no state, and KV where it attends: those get
/// more time. When a role has more than 3 of them within a minute, its patience doubles, and does
/// not shrink again: a busy machine must not turn into a storm of losses.
class probe_patience {
public:
  using time_point = std::chrono::steady_clock::time_point;
  using milliseconds = std::chrono::milliseconds;
  static constexpr size_t alarms_allowed = 3;
  static constexpr std::chrono::seconds alarm_window{60};

  /// `dead`: silence after which connections are closed anyway.
  explicit probe_patience(milliseconds dead) : dead_{dead} {}

  /// Between two questions to a worker that answers.
  milliseconds every() const { return std::max(dead_ / 4, milliseconds{1}); }

  /// For the answer to one of the two questions that a silent worker is asked.
  milliseconds half(worker_role role) const {
    const auto percent = role == worker_role::attention ? 70 : 30;
    const auto found = doubled_.find(role);
    const auto times = found == doubled_.end() ? 1u : found->second;
    return std::max(std::min(dead_ * percent / 100 * times, 2 * dead_) / 2, milliseconds{1});
  }

  /// One that was given up lives. True when its role gets more time from now on.
  bool false_alarm(worker_role role, time_point now) {
    auto& alarms = alarms_[role];
    while (!alarms.empty() && now - alarms.front() > alarm_window) alarms.pop_front();
    alarms.push_back(now);
    if (alarms.size() <= alarms_allowed || half(role) >= dead_) return false;
    alarms.clear();
    doubled_[role] = 2 * std::max(1u, doubled_[role]);
    return true;
  }

private:
  milliseconds dead_;
  std::map<worker_role, std::deque<time_point>> alarms_;
  std::map<worker_role, uint32_t> doubled_; ///< factor
};

} // namespace lamella::scheduler
