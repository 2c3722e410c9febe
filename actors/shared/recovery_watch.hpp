/// Who pauses because something was lost, and for how long: shared state any thread may read.
#pragma once

#include "scheduler/types.hpp"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>

namespace lamella::actors {

/// One per process. Requests tell when they pause and when they go on, the gateway when there is no
/// pipeline; all by one steady clock.
class recovery_watch {
public:
  using time_point = std::chrono::steady_clock::time_point;

  /// A pause longer than `max_pause` raises an alarm (`recovery.max_pause_seconds`).
  explicit recovery_watch(std::chrono::milliseconds max_pause) : max_pause_{max_pause} {}

  void set_max_pause(std::chrono::milliseconds limit) { max_pause_.store(limit); }

  /// The role whose loss, or whose actor's end, ended the newest pipeline.
  void lost(const std::string& role);
  /// A role for want of which there can be no pipeline; empty: none.
  void lacks(const std::string& role);
  /// Whom requests that pause wait for: the role that is lacking, else the one lost last.
  std::string role() const;
  /// What requests run on is gone; again before it is back: the first time counts.
  void pipeline_lost(time_point now);
  void pipeline_back();
  /// What that request had begun stands still; again before it goes on: the first time counts.
  void pauses(scheduler::request_id who, time_point now);
  /// It goes on, or is over.
  void goes_on(scheduler::request_id who);

  struct view {
    uint64_t recovering = 0;              ///< requests that pause
    bool down = false;                    ///< there is no pipeline
    std::chrono::milliseconds longest{0}; ///< of these pauses, until now
    bool too_long = false;                ///< it raises the alarm
  };
  view look(time_point now) const;

private:
  std::atomic<std::chrono::milliseconds> max_pause_;
  mutable std::mutex mutex_; ///< of the members below
  std::string lost_ = "model", lacking_;
  std::optional<time_point> down_since_;
  std::map<scheduler::request_id, time_point> since_;
};

} // namespace lamella::actors
