/// How long a driver polls before it sleeps.
#pragma once

#include <algorithm>
#include <chrono>

#include <sched.h>

namespace lamella::gpu {

/// Polling reacts within a fraction of a microsecond, waking a sleeper takes ten to fifty. But a
/// driver that polls in vain takes a core from the process it waits for. So the driver polls for
/// twice the duration of recent waits, if those were short: waits longer than `most` reduce
/// polling. After the first few polls it yields its core between polls.
class poll_timeout {
public:
  using clock = std::chrono::steady_clock;
  static constexpr std::chrono::nanoseconds least{2'000}, most{100'000};

  /// Whether to poll again rather than sleep.
  bool poll() {
    const auto now = clock::now();
    if (looks_++ == 0) began_ = now;
    return now - began_ < budget_;
  }

  /// Between two polls.
  void pause() const {
    if (looks_ > yields_after) {
      sched_yield();
      return;
    }
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
  }

  /// The wait has ended, awake or asleep.
  void rewarded() {
    if (looks_ == 0) return;
    const std::chrono::nanoseconds took = clock::now() - began_;
    budget_ = took > most ? std::max(least, budget_ / 2)
                          : std::clamp(std::max(2 * took, budget_ * 7 / 8), least, most);
    looks_ = 0;
  }

private:
  static constexpr int yields_after = 100;
  clock::time_point began_{};
  std::chrono::nanoseconds budget_ = most;
  int looks_ = 0;
};

} // namespace lamella::gpu
