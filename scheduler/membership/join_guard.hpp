/// Which challenges are open and who is not listened to: the bookkeeping of join authentication
/// (reliability C2.3). Random bytes and the time come from outside.
#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <map>
#include <optional>
#include <string>

namespace lamella::scheduler {

/// Nonces are good once and for 5 s; 5 failures of one origin within a minute block it for 60 s.
/// All of it is bounded: open challenges by `challenges_max`, origins by `origins_max`.
class join_guard {
public:
  using time_point = std::chrono::steady_clock::time_point;
  using seconds = std::chrono::seconds;

  static constexpr size_t challenges_max = 64, origins_max = 1024, failures_max = 5;
  static constexpr seconds nonce_life{5}, failure_window{60}, block_time{60};

  /// How much longer an origin is blocked; nothing when it is not.
  std::optional<seconds> blocked(const std::string& origin, time_point now) const;

  /// Remembers a nonce that is being sent out; false when too many are open.
  bool issue(const std::string& nonce, time_point now);

  /// True once, in time, for a nonce that was issued.
  bool redeem(const std::string& nonce, time_point now);

  /// A wrong proof came from there.
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
