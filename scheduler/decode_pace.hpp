/// Pacing of decoding during a rebuild: a bounded share of the time (L-M26, reliability A5).
#pragma once

#include "scheduler/types.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <set>

namespace lamella::scheduler {

/// When a batch may run its next iteration. While lost KV is recomputed on the processors that
/// decoding uses, every iteration is followed by a rest, so that iterations take `percent` of the
/// time: recovered sequences decode, and the others are not delayed.
class decode_pace {
public:
  using nanoseconds = std::chrono::nanoseconds;

  /// Upper bound of the rest after an iteration.
  static constexpr nanoseconds rest_max = std::chrono::seconds{1};

  /// `percent`: 1 to 100; 100: no rest.
  explicit decode_pace(uint32_t percent = 100) : percent_{percent} {}

  /// Recomputation of KV on that prefill stream has started (`some`) or ended.
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

/// The share in percent of one of `batches` batches that together get `percent` of the time.
inline uint32_t share_of_batch(uint32_t percent, uint32_t batches) {
  return percent >= 100 ? 100 : std::max(1u, percent / std::max(1u, batches));
}

} // namespace lamella::scheduler
