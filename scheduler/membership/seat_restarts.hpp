/// Restart delay of an exited worker process, and whether its seat counts as failing.
#pragma once

#include "scheduler/membership/restart_policy.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <utility>

namespace lamella::scheduler {

/// One broken seat must not end a service, so a seat is retried without limit. Where a supervisor
/// would escalate (`restart_policy`), the seat is failing: it is retried after 1 s, then with
/// doubling delays up to 60 s. Once its worker serves, it is not failing any more; the delays are
/// reset when it has served for 60 s without an exit. Time is any steady clock's.
class seat_restarts {
public:
  using time_point = restart_policy::time_point;
  using milliseconds = restart_policy::milliseconds;

  seat_restarts(uint32_t quick, std::chrono::seconds window) : quick_{quick, window} {}

  /// The process crashed, or could not be started.
  void on_fault(time_point now) {
    end_service(now);
    ++faults_;
    const bool too_many = quick_.on_exit(now) == restart_verdict::escalate;
    if (too_many && !slow_) slow_ = shortest_slow;
    failing_ = slow_.has_value();
  }

  /// The process was ended from outside: no fault of its own.
  void on_loss(time_point now) {
    end_service(now);
    quick_.on_loss(now);
  }

  /// Its worker serves. May be called repeatedly.
  void on_serving(time_point now) {
    failing_ = false;
    if (!serves_since_) serves_since_ = now;
    quick_.on_serving(now);
  }

  /// The cause of the faults so far is resolved.
  void forgive() {
    quick_.forgive();
    start_over();
    failing_ = false;
  }

  /// The delay before the next start; call once per start. `jitter` as for restart_policy.
  milliseconds next_delay(double jitter) {
    if (!failing_) return quick_.next_delay(jitter);
    const auto delay = *slow_;
    slow_ = std::min(2 * delay, longest_slow);
    return restart_policy::spread(delay, jitter);
  }

  bool failing() const { return failing_; }

  /// Faults since it last served for long enough.
  uint32_t faults() const { return faults_; }

  restart_policy::budget spent(time_point now) const { return quick_.spent(now); }

private:
  static constexpr milliseconds shortest_slow{1000}, longest_slow{60'000};
  static constexpr std::chrono::seconds healthy_after{60};

  void end_service(time_point now) {
    const auto since = std::exchange(serves_since_, std::nullopt);
    if (since && now - *since >= healthy_after) start_over();
  }

  void start_over() {
    slow_.reset();
    faults_ = 0;
  }

  restart_policy quick_;
  std::optional<milliseconds> slow_; ///< the next delay, once there were too many faults
  std::optional<time_point> serves_since_;
  uint32_t faults_ = 0;
  bool failing_ = false;
};

} // namespace lamella::scheduler
