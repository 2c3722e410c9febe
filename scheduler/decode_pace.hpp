/// Decoding beside a rebuild: a bounded share of the time (L-M26, reliability A5).
#pragma once

#include "scheduler/types.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <set>

namespace lamella::scheduler {

/// When a batch may run its next iteration. While sequences wait for their KV to be computed again,
/// on processors that decoding uses too, every iteration is followed by a rest, so that iterations
/// take `percent` of the time: those that are back go on, and the others are not kept waiting.
class decode_pace {
public:
  using nanoseconds = std::chrono::nanoseconds;

  /// However long an iteration took, the next one is not further away than this.
  static constexpr nanoseconds rest_max = std::chrono::seconds{1};

  /// 1 to 100; 100: never bounded.
  explicit decode_pace(uint32_t percent = 100) : percent_{percent} {}

  /// KV is being computed again on that prefill stream, or no more.
  void rebuilds(stream_id prefill_stream, bool some) {
    if (some)
      rebuilding_.insert(prefill_stream);
    else
      rebuilding_.erase(prefill_stream);
  }

  bool bounded() const { return percent_ < 100 && !rebuilding_.empty(); }

  /// An iteration has ended at `now` that took `took`.
  void ran(nanoseconds now, nanoseconds took) {
    const auto rest = took / percent_ * (100 - percent_);
    next_ = now + std::min(rest, rest_max);
  }

  /// From `now` to the next iteration; 0: at once.
  nanoseconds rest(nanoseconds now) const {
    return bounded() ? std::max(nanoseconds{0}, next_ - now) : nanoseconds{0};
  }

private:
  uint32_t percent_;
  std::set<stream_id> rebuilding_;
  nanoseconds next_{0};
};

/// The share of one batch where `batches` of them have `percent` of the time together.
inline uint32_t share_of_batch(uint32_t percent, uint32_t batches) {
  return percent >= 100 ? 100 : std::max(1u, percent / std::max(1u, batches));
}

} // namespace lamella::scheduler
