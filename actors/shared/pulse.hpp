/// Time of the last finished iteration of this process, for readiness.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>

namespace lamella::actors {

/// Shared by the launchers of iterations and the health probes. Lock-free except for the first
/// beat, which start-up waits for.
class pulse {
public:
  explicit pulse(std::chrono::milliseconds max_age = std::chrono::seconds{5}) : max_age_{max_age} {}

  /// The age of the last beat beyond which the service is not ready
  /// (`health.iteration_max_age_seconds`).
  std::chrono::milliseconds max_age() const { return max_age_.load(); }
  void set_max_age(std::chrono::milliseconds limit) { max_age_.store(limit); }

  void beat(std::chrono::steady_clock::time_point now) {
    last_.store(now.time_since_epoch().count(), std::memory_order_relaxed);
    if (count_.fetch_add(1, std::memory_order_relaxed) > 0) return;
    // Under the lock, or the news could fall between a waiter's look and its sleep.
    std::lock_guard lock{mutex_};
    first_.notify_all();
  }

  /// Blocks until the first beat, at most for `limit`; returns whether there was one.
  bool wait_first(std::chrono::milliseconds limit) {
    std::unique_lock lock{mutex_};
    return first_.wait_for(lock, limit, [this] { return count() > 0; });
  }

  /// Time since the last beat; since the clock's start when there was none.
  std::chrono::steady_clock::duration age(std::chrono::steady_clock::time_point now) const {
    return now.time_since_epoch()
           - std::chrono::steady_clock::duration{last_.load(std::memory_order_relaxed)};
  }

  uint64_t count() const { return count_.load(std::memory_order_relaxed); }

private:
  std::atomic<std::chrono::milliseconds> max_age_;
  std::atomic<int64_t> last_{0};
  std::atomic<uint64_t> count_{0};
  std::mutex mutex_; ///< of `first_`
  std::condition_variable first_;
};

} // namespace lamella::actors
