/// Requests paused by a loss, and for how long: readable by any thread.
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

/// One per process. Requests report when they pause and resume, the gateway when there is no
/// pipeline; all by one steady clock.
class recovery_watch {
public:
  using time_point = std::chrono::steady_clock::time_point;

  /// A pause longer than `max_pause` raises an alarm (`recovery.max_pause_seconds`).
  explicit recovery_watch(std::chrono::milliseconds max_pause) : max_pause_{max_pause} {}

  void set_max_pause(std::chrono::milliseconds limit) { max_pause_.store(limit); }

  /// The role whose loss or failure ended the newest pipeline.
  void lost(const std::string& role);
  /// A missing role without which no pipeline is possible; empty: none.
  void lacks(const std::string& role);
  /// The role that paused requests wait for: the missing one, else the one lost last.
  std::string role() const;
  /// The pipeline is lost; of repeated calls before it is back, the first one counts.
  void pipeline_lost(time_point now);
  void pipeline_back();
  /// That request is paused; of repeated calls before it resumes, the first one counts. `begun`: a
  /// stream of it stands still. A prompt that begins anew only has a longer TTFT: its pause is not
  /// measured.
  void pauses(scheduler::request_id who, time_point now, bool begun);
  /// The request resumes or has ended.
  void goes_on(scheduler::request_id who);

  struct view {
    uint64_t recovering = 0;              ///< paused requests
    bool down = false;                    ///< there is no pipeline
    std::chrono::milliseconds longest{0}; ///< longest pause so far of a stream, or of all
    bool too_long = false;                ///< the alarm is raised
  };
  view look(time_point now) const;

private:
  std::atomic<std::chrono::milliseconds> max_pause_;
  mutable std::mutex mutex_; ///< of the members below
  std::string lost_ = "model", lacking_;
  std::optional<time_point> down_since_;
  struct pause {
    time_point since;
    bool begun = false;
  };
  std::map<scheduler::request_id, pause> paused_;
};

} // namespace lamella::actors
