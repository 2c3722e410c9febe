/// What requests see of the last seconds: their latencies, and how many tokens they get.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <optional>

namespace lamella::actors {

/// Fed by requests and read by the autoscaler, in any order of threads. A call costs well under a
/// microsecond. Time is an argument; the second that is under way is not read.
class load_window {
public:
  using time_point = std::chrono::steady_clock::time_point;
  using seconds = std::chrono::duration<double>;

  /// The longest stretch that can be read.
  static constexpr std::chrono::seconds longest{10};

  /// The first token of a request has come, so long after the request.
  void first_token(time_point now, seconds after);
  /// A later token has come, so long after the one before it.
  void token_gap(time_point now, seconds gap);
  void tokens(time_point now, uint64_t count);

  struct reading {
    seconds ttft_p99{0}, tbt_p99{0}; ///< at most 5 % too long; 0: no sample
    double tokens_per_s = 0;
  };
  /// The last `length`, at most the longest and at least a second.
  reading read(time_point now, std::chrono::seconds length = longest) const;

private:
  /// Durations by 5 %, from 0.1 ms to a quarter of an hour.
  static constexpr size_t buckets = 330;
  using durations = std::array<uint32_t, buckets>;
  /// What happened in one second.
  struct slot {
    int64_t second = -1; ///< of the clock; -1: none
    durations first{}, gaps{};
    uint64_t tokens = 0;
  };

  static size_t bucket_of(seconds x);
  static seconds p99_of(const durations& counts);
  /// The slot of that time, emptied for it; null for a time that is past.
  slot* at(time_point now);

  mutable std::mutex mutex_; ///< of what follows
  std::array<slot, static_cast<size_t>(longest.count()) + 1> slots_;
  std::optional<int64_t> since_; ///< the first second that was told of
};

} // namespace lamella::actors
