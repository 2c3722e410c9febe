/// When a batch of a new epoch launches its first iteration.
#pragma once

#include <algorithm>
#include <chrono>

namespace lamella::scheduler {

/// Sequences of the epoch before join the batch of the next one within milliseconds, each by a
/// message of its own request. An iteration of the first of them would make all others wait for its
/// end, and for that of the one behind it, which is launched early. The batch waits until none has
/// joined for `quiet`, and for `most` at most.
class join_gathering {
public:
  using nanoseconds = std::chrono::nanoseconds;
  static constexpr nanoseconds quiet = std::chrono::milliseconds{2};
  static constexpr nanoseconds most = std::chrono::milliseconds{20};

  /// `waits`: an epoch before this one has left sequences.
  explicit join_gathering(bool waits = false) : waits_{waits} {}

  /// A sequence has joined.
  void joined(nanoseconds now) {
    if (!any_) first_ = now;
    any_ = true;
    newest_ = now;
  }

  /// From `now` to the first launch; 0: at once, and for ever.
  nanoseconds rest(nanoseconds now) {
    if (!waits_ || !any_) return nanoseconds{0};
    const auto left = std::min(newest_ + quiet, first_ + most) - now;
    if (left > nanoseconds{0}) return left;
    waits_ = false;
    return nanoseconds{0};
  }

private:
  bool waits_, any_ = false; ///< any: a sequence has joined
  nanoseconds first_{0}, newest_{0};
};

} // namespace lamella::scheduler
