/// How much of the prompts goes into the next launch of a lane (S-M10, S-M12; V-M16).
#pragma once

#include "scheduler/iteration_pace.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <limits>

namespace lamella::scheduler {

/// What an iteration with prompts should take at most; 0: no bound.
struct composer_bounds {
  std::chrono::nanoseconds alone = std::chrono::milliseconds{60};  ///< prompts and nothing else
  std::chrono::nanoseconds beside = std::chrono::milliseconds{60}; ///< sequences decode in it
};

/// Prompts get the time that the rows of sequences that decode leave of `beside`: the work that a
/// mixed launch may have follows the time that the last one took, and is `work_least` where
/// decoding takes all of it. So nothing has to be known of what its parts cost, which is much less
/// together than apart: weights are read once. Cost: O(64^2) for a bound of prompts alone, O(1)
/// beside tokens.
class composer {
public:
  using nanoseconds = std::chrono::nanoseconds;

  /// Of a mixed launch: at least, and of the first one. Prompts go on where tokens take all the
  /// time there is.
  static constexpr uint64_t work_least = 16, work_first = 64;
  /// The most that the work of one launch may differ from that of the one before, as a factor.
  static constexpr double shrink_most = 0.5, grow_most = 1.25;

  explicit composer(composer_bounds bounds = {}) : bounds_{bounds} {}

  /// An iteration has taken `took`: `work` units of prompts (prefill_work), and rows of sequences
  /// that decode if `tokens`.
  void ran(bool tokens, uint64_t work, nanoseconds took) {
    if (work == 0 || took.count() <= 0) return;
    if (!tokens) return pace_.add(work, took);
    beside_ns_ = static_cast<double>(took.count()) / static_cast<double>(work);
    if (bounds_.beside.count() == 0) return;
    const auto ratio =
        static_cast<double>(bounds_.beside.count()) / static_cast<double>(took.count());
    const auto times = [&](uint64_t units) {
      const auto next = static_cast<double>(units) * std::clamp(ratio, shrink_most, grow_most);
      return std::max(work_least, static_cast<uint64_t>(next));
    };
    // A launch with less work than it might have had says nothing of how much more would fit.
    if (ratio < 1)
      work_beside_ = times(work_beside_);
    else
      work_beside_ = std::max(work_beside_, times(work));
  }

  /// Whether prompts of that much work, all that wait, are more than the next mixed launch takes:
  /// where sequences may stand back, they do it for these (S-M12).
  bool prompts_first(uint64_t waiting) const { return waiting > work_most(true); }

  /// Measured time of a unit of work in nanoseconds; 0 before the first iteration with prompts.
  double unit_ns() const { return pace_.unit_ns() > 0 ? pace_.unit_ns() : beside_ns_; }

  /// The most work of prompts in the next launch. Of prompts alone no bound before one was
  /// measured.
  uint64_t work_most(bool tokens) const {
    const auto bound = tokens ? bounds_.beside : bounds_.alone;
    if (bound.count() == 0) return std::numeric_limits<uint64_t>::max();
    return tokens ? work_beside_ : pace_.work_within(bound);
  }

private:
  composer_bounds bounds_;
  uint64_t work_beside_ = work_first;
  double beside_ns_ = 0; ///< time of a unit in the last mixed launch
  iteration_pace pace_;  ///< of prompts alone
};

} // namespace lamella::scheduler
