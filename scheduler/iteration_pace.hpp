/// How long iterations of some work take, learned from those that ran: bounds the next one.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace lamella::scheduler {

/// Time of a unit of work, kept apart for works of similar size (powers of two): small iterations
/// cost more for a unit, and how much more no one knows beforehand. A size that was not measured is
/// taken to cost what the next larger one does, and none costs more than a smaller one: so sizes
/// that ran while the machine was slow are tried again. Cost: O(64^2) for a bound.
class iteration_pace {
public:
  using nanoseconds = std::chrono::nanoseconds;

  /// A size may cost so much more for a unit than the cheapest one. A smaller bound than that
  /// would cost more than it saves others from waiting.
  static constexpr double dearest = 4.0 / 3;

  /// An iteration of `work` units took so long. Newer ones count more.
  void add(uint64_t work, nanoseconds took) {
    if (work == 0) return;
    auto& known = unit_ns_[size_of(work)];
    const auto now = static_cast<double>(took.count()) / static_cast<double>(work);
    known = known == 0 ? now : (known + now) / 2;
  }

  /// Of the cheapest size, in nanoseconds; 0 before the first iteration.
  double unit_ns() const {
    double best = 0;
    for (const auto x : unit_ns_)
      if (x > 0 && (best == 0 || x < best)) best = x;
    return best;
  }

  /// The most work that takes no longer than `time`, of sizes that are not too dear: where all of
  /// these take longer, the least of the smallest one. No bound before the first iteration.
  uint64_t work_within(nanoseconds time) const {
    const auto best = unit_ns();
    if (best == 0) return std::numeric_limits<uint64_t>::max();
    uint64_t smallest = 1;
    for (size_t size = unit_ns_.size(); size-- > 1;) {
      const auto unit = unit_ns_of(size);
      if (unit == 0 || unit > dearest * best) continue;
      const auto least = uint64_t{1} << (size - 1);
      const auto units = static_cast<double>(time.count()) / unit;
      if (units >= static_cast<double>(least))
        return static_cast<uint64_t>(std::min(units, 2.0 * static_cast<double>(least)));
      smallest = least;
    }
    return smallest;
  }

private:
  static size_t size_of(uint64_t work) {
    return std::min<size_t>(std::bit_width(work), 63); // of [2^(size - 1), 2^size)
  }

  /// What a unit costs in works of this size, as far as one can tell; 0: nothing is known.
  double unit_ns_of(size_t size) const {
    double cost = 0;
    for (size_t s = 1; s <= size; ++s)
      if (unit_ns_[s] > 0 && (cost == 0 || unit_ns_[s] < cost)) cost = unit_ns_[s];
    for (auto s = size; cost == 0 && s < unit_ns_.size(); ++s) cost = unit_ns_[s];
    return cost;
  }

  std::array<double, 64> unit_ns_{}; ///< by size; 0: not measured
};

} // namespace lamella::scheduler
