/// Restart or escalate: the restart budget of a supervised child (reliability A8).
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <deque>
#include <optional>
#include <utility>

namespace lamella::scheduler {

enum class restart_verdict : uint8_t { restart, escalate };

/// At most `restarts` within `window`; failures without service in between count however far apart
/// they are, so that a slowly failing start is not retried for ever. The delay before a restart
/// doubles from 10 ms to 5 s and is reset after 60 s of health, and for children ended from outside
/// after a second of service, where waiting helps nobody. Time is any steady clock's.
class restart_policy {
public:
  using time_point = std::chrono::steady_clock::time_point;
  using milliseconds = std::chrono::milliseconds;

  restart_policy(uint32_t restarts, std::chrono::seconds window)
      : restarts_{restarts}, window_{window} {}

  /// A child failed by its own fault.
  restart_verdict on_exit(time_point now) {
    if (std::exchange(served_, false))
      while (!exits_.empty() && now - exits_.front() > window_) exits_.pop_front();
    settled_at_ = never; // its own fault may well come again
    on_loss(now);
    if (exits_.size() >= restarts_) return restart_verdict::escalate;
    exits_.push_back(now);
    return restart_verdict::restart;
  }

  /// The child serves. May be called repeatedly.
  void on_serving(time_point now) {
    served_ = true;
    settled_at_ = std::min(settled_at_, now + settled_after);
  }

  /// A child was ended from outside (killed, its host lost): costs a delay, but no restart of the
  /// budget (decision 30).
  void on_loss(time_point now) {
    // The window may be shorter than a healthy time, so the newest exit is remembered apart.
    if ((newest_exit_ && now - *newest_exit_ > healthy_after) || now >= settled_at_)
      delay_ = shortest_delay;
    newest_exit_ = now;
    settled_at_ = never;
  }

  /// The cause of the exits so far is resolved: they no longer count or delay.
  void forgive() {
    exits_.clear();
    delay_ = shortest_delay;
  }

  /// Deterministic jitter of the restart of that number: spreads restarts like a random number, and
  /// is the same in every run.
  static double jitter_of(uint64_t number) {
    return static_cast<double>(number * 0x9e3779b97f4a7c15 >> 11) * 0x1p-53;
  }

  /// The delay before the granted restart. `jitter` in [0, 1) varies it by 20 % each way.
  milliseconds next_delay(double jitter) {
    const auto delay = delay_;
    delay_ = std::min(delay_ * 2, longest_delay);
    return spread(delay, jitter);
  }

  /// That delay, 20 % shorter to 20 % longer.
  static milliseconds spread(milliseconds delay, double jitter) {
    return milliseconds{
        static_cast<int64_t>(static_cast<double>(delay.count()) * (0.8 + 0.4 * jitter))};
  }

  /// The restarts allowed by the window, and those used.
  struct budget {
    uint32_t used = 0, allowed = 0;
    std::chrono::seconds window{0};
  };
  budget spent(time_point now) const {
    const auto recent = std::count_if(exits_.begin(), exits_.end(),
                                      [&](auto x) { return !served_ || now - x <= window_; });
    return {static_cast<uint32_t>(recent), restarts_, window_};
  }

private:
  static constexpr milliseconds shortest_delay{10}, longest_delay{5000};
  static constexpr std::chrono::seconds healthy_after{60}, settled_after{1};
  static constexpr time_point never = time_point::max();

  uint32_t restarts_;
  std::chrono::seconds window_;
  std::deque<time_point> exits_; ///< within the window
  bool served_ = true;           ///< since the last of them
  std::optional<time_point> newest_exit_;
  time_point settled_at_ = never; ///< when it has served long enough to reset the delay
  milliseconds delay_{shortest_delay};
};

} // namespace lamella::scheduler
