/// Timeouts of the first iterations of an epoch, learned from earlier epochs (reliability A1).
#pragma once

#include "scheduler/learned_timeout.hpp"

#include <map>
#include <mutex>
#include <optional>

namespace lamella::actors {

/// A learned timeout that outlives the pipelines: shared by the launchers of streams of one kind.
/// Thread-safe.
class first_iterations {
public:
  /// A first iteration of `units` units of work has ended.
  void add(uint64_t units, std::chrono::nanoseconds took) {
    std::lock_guard lock{mutex_};
    known_.add(units, took);
  }

  /// The timeout of a first iteration of `units` units after `failures` failures in a row.
  std::chrono::milliseconds next(uint64_t units, uint32_t failures = 0) const {
    std::lock_guard lock{mutex_};
    return known_.next(units, failures);
  }

  /// A stream has learned the timeout of its iterations.
  void note_learned(uint32_t stream, std::chrono::milliseconds timeout) {
    std::lock_guard lock{mutex_};
    learned_[stream] = timeout;
  }

  /// The longest that streams of this epoch and of earlier ones have learned.
  std::optional<std::chrono::milliseconds> learned() const {
    std::lock_guard lock{mutex_};
    std::optional<std::chrono::milliseconds> longest;
    for (const auto& [stream, timeout] : learned_)
      longest = std::max(longest, std::optional{timeout});
    return longest;
  }

private:
  mutable std::mutex mutex_;
  scheduler::learned_timeout known_{scheduler::timeout_of_first_iterations};
  std::map<uint32_t, std::chrono::milliseconds> learned_; ///< by stream, the newest
};

} // namespace lamella::actors
