/// When a worker whose session has ended joins again.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>

namespace lamella::cli {

/// The pause before the next try: 100 ms, twice as much after each session of less than a minute.
class rejoin_pause {
public:
  using milliseconds = std::chrono::milliseconds;
  static constexpr milliseconds shortest{100}, longest{5'000};
  /// A child that stays away for longer is taken for hung (child_keeper_config::silence).
  static constexpr milliseconds longest_of_child{1'000};

  explicit rejoin_pause(milliseconds most) : longest_{most} {}

  /// After a session of that length; up to a fifth shorter by `chance` in [0, 1], so that workers
  /// that were lost together do not all come together.
  milliseconds next(std::chrono::nanoseconds session, double chance) {
    if (session > std::chrono::minutes{1}) delay_ = shortest;
    const auto now = delay_;
    delay_ = std::min(2 * delay_, longest_);
    return milliseconds{static_cast<int64_t>(static_cast<double>(now.count()) * (1 - chance / 5))};
  }

private:
  milliseconds longest_, delay_ = shortest;
};

/// How long a worker that has served is to look for a service that takes it again.
class rejoin_limit {
public:
  using clock = std::chrono::steady_clock;

  explicit rejoin_limit(double seconds)
      : limit_{std::chrono::milliseconds{static_cast<int64_t>(seconds * 1e3)}} {}

  /// A session has ended.
  void ended(bool served, clock::time_point now) {
    if (served) since_ = now;
  }
  /// Is it over at that time? Never for one that has not served yet: its service may come.
  bool over(clock::time_point now) const {
    return since_ && limit_.count() > 0 && now - *since_ > limit_;
  }

private:
  std::chrono::milliseconds limit_;
  std::optional<clock::time_point> since_;
};

} // namespace lamella::cli
