/// Timeout of the first iteration of an epoch, learned from the first iterations of earlier epochs
/// (reliability A1).
#pragma once

#include "scheduler/learned_timeout.hpp"

#include <mutex>

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

private:
  mutable std::mutex mutex_;
  scheduler::learned_timeout known_{scheduler::timeout_of_first_iterations};
};

} // namespace lamella::actors
