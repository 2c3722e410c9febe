/// Heartbeat timeout of a silent worker (reliability A1).
#pragma once

#include "scheduler/membership/seats.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <utility>

namespace lamella::scheduler {

/// Every worker is probed periodically. One that does not reply within half of the timeout is
/// suspected and probed once more; if it does not reply then either, it is declared dead. Two
/// probes, because the prober itself may have been stopped, which delays the first replies.
///
/// A false positive costs an iteration for a stateless worker, and KV for an attention worker,
/// which therefore gets more time. When a role has more than 3 of them within a minute, its timeout
/// doubles and stays doubled: an overloaded machine must not cause a storm of losses. Where only
/// one of several workers has them, that worker or its link is slow, and the others keep their
/// timeout.
class probe_timeout {
public:
  using time_point = std::chrono::steady_clock::time_point;
  using milliseconds = std::chrono::milliseconds;
  using worker_key = std::pair<std::string, std::string>; ///< host and name
  static constexpr size_t alarms_allowed = 3, alarms_kept = 64;
  static constexpr std::chrono::seconds alarm_window{60};

  /// `dead`: silence after which connections are closed anyway.
  explicit probe_timeout(milliseconds dead) : dead_{dead} {}

  /// Interval between two probes of a worker that replies.
  milliseconds every() const { return std::max(dead_ / 4, milliseconds{1}); }

  /// Reply timeout of one of the two probes of a silent worker.
  milliseconds half(worker_role role) const {
    const auto percent = role == worker_role::attention ? 70 : 30;
    const auto found = doubled_.find(role);
    const auto times = found == doubled_.end() ? 1u : found->second;
    return std::max(std::min(dead_ * percent / 100 * times, 2 * dead_) / 2, milliseconds{1});
  }

  /// A worker that was declared dead is alive. `worker`: its host and name; `alone`: no other
  /// worker has that role. True when the timeout of its role is doubled.
  bool false_alarm(worker_role role, const worker_key& worker, bool alone, time_point now) {
    auto& alarms = alarms_[role];
    while (!alarms.empty() && now - alarms.front().when > alarm_window) alarms.pop_front();
    alarms.push_back({now, worker});
    if (alarms.size() > alarms_kept) alarms.pop_front();
    const bool of_one =
        std::ranges::all_of(alarms, [&](const alarm& x) { return x.worker == worker; });
    if (alarms.size() <= alarms_allowed || (of_one && !alone) || half(role) >= dead_) return false;
    alarms.clear();
    doubled_[role] = 2 * std::max(1u, doubled_[role]);
    return true;
  }

private:
  struct alarm {
    time_point when;
    worker_key worker;
  };
  milliseconds dead_;
  std::map<worker_role, std::deque<alarm>> alarms_;
  std::map<worker_role, uint32_t> doubled_; ///< factor
};

} // namespace lamella::scheduler
