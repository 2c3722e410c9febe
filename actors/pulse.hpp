/// When this process last finished an iteration: what readiness rests on.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace lamella::actors {

/// Shared by all that run iterations and the probes that ask. Lock-free.
class pulse {
public:
  void beat(std::chrono::steady_clock::time_point now) {
    last_.store(now.time_since_epoch().count(), std::memory_order_relaxed);
    count_.fetch_add(1, std::memory_order_relaxed);
  }

  /// Since the last beat; since the clock's start when there was none.
  std::chrono::steady_clock::duration age(std::chrono::steady_clock::time_point now) const {
    return now.time_since_epoch()
           - std::chrono::steady_clock::duration{last_.load(std::memory_order_relaxed)};
  }

  uint64_t count() const { return count_.load(std::memory_order_relaxed); }

private:
  std::atomic<int64_t> last_{0};
  std::atomic<uint64_t> count_{0};
};

} // namespace lamella::actors
