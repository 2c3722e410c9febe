/// How long a driver polls before it sleeps.
#pragma once

#include <algorithm>
#include <chrono>

#include <sched.h>

namespace lamella::gpu {

/// Polling answers within a fraction of a microsecond, waking a sleeper takes ten to fifty. But a
/// driver that polls in vain takes a core from the very process it waits for. So it polls for twice
/// as long as a wait took lately, if that would have been worth it: waits that last longer than
/// `most` make it impatient. After the first few looks it offers its core to others between two.
class poll_patience {
public:
  using clock = std::chrono::steady_clock;
  static constexpr std::chrono::nanoseconds least{2'000}, most{100'000};

  /// Whether to look again rather than sleep.
  bool poll() {
    const auto now = clock::now();
    if (looks_++ == 0) began_ = now;
    return now - began_ < budget_;
  }

  /// Between two looks.
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

  /// What was waited for has come, awake or asleep.
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
