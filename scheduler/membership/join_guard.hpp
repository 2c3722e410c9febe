/// State of join authentication: open challenges and blocked origins (reliability C2.3). Random
/// bytes and the time are passed in.
#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <map>
#include <optional>
#include <string>

namespace lamella::scheduler {

/// Nonces are valid once and for 5 s; 5 failures of one origin within a minute block it for 60 s.
/// All of it is bounded: open challenges by `challenges_max`, origins by `origins_max`.
class join_guard {
public:
  using time_point = std::chrono::steady_clock::time_point;
  using seconds = std::chrono::seconds;

  static constexpr size_t challenges_max = 64, origins_max = 1024, failures_max = 5;
  static constexpr seconds nonce_life{5}, failure_window{60}, block_time{60};

  /// Remaining block time of an origin; nothing when it is not blocked.
  std::optional<seconds> blocked(const std::string& origin, time_point now) const;

  /// Records an issued nonce; false when too many are open.
  bool issue(const std::string& nonce, time_point now);

  /// True once, within its lifetime, for an issued nonce.
  bool redeem(const std::string& nonce, time_point now);

  /// Records a wrong proof of that origin.
  void failed(const std::string& origin, time_point now);

private:
  struct record {
    std::deque<time_point> failures;
    time_point blocked_until{};
  };
  std::map<std::string, time_point> nonces_; ///< until when
  std::map<std::string, record> origins_;
};

} // namespace lamella::scheduler
