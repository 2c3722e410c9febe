/// A thread that does one thing again and again.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

namespace lamella {

/// While it lives, `tick` is called every so often, on a thread of its own; the first time after
/// `every`. For what must go on where actors do not. `tick` must not throw.
class ticker {
public:
  ticker(std::chrono::milliseconds every, std::function<void()> tick)
      : thread_{[this, every, tick = std::move(tick)] {
          std::unique_lock lock{mutex_};
          while (!changed_.wait_for(lock, every, [this] { return over_; })) tick();
        }} {}

  /// Waits for a tick under way.
  ~ticker() {
    {
      const std::lock_guard lock{mutex_};
      over_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

  ticker(const ticker&) = delete;
  ticker& operator=(const ticker&) = delete;

private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool over_ = false;
  std::thread thread_;
};

} // namespace lamella
