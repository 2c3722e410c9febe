/// Timeout of work of a known size, learned from similar work (reliability A1).
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>

namespace lamella::scheduler {

/// Sixteen times the median time per unit of the last 32 works, scaled to the size, and at least
/// two seconds: machines are shared, and timing out too early costs the work each time. Doubles
/// with every failure in a row. Cost: O(32) for each deadline.
class work_deadline {
public:
  using milliseconds = std::chrono::milliseconds;
  static constexpr milliseconds least{2000};

  /// `fixed`: cost in units of the part that does not grow with the size. `most`: the longest
  /// timeout, also used before the first measurement where `slowest` (units per second) is 0.
  work_deadline(uint64_t fixed, milliseconds most, uint64_t slowest = 0)
      : fixed_{fixed}, most_{most}, slowest_{slowest} {}

  void add(uint64_t units, std::chrono::nanoseconds took) {
    last_[count_++ % last_.size()] =
        static_cast<double>(took.count()) / static_cast<double>(units + fixed_);
  }

  /// No work was measured yet.
  bool empty() const { return count_ == 0; }

  /// The timeout of work of `units` units after `failures` failures in a row.
  milliseconds next(uint64_t units, uint32_t failures = 0) const {
    auto limit = first(units);
    for (uint32_t i = 0; i < failures && limit < most_; ++i) limit *= 2;
    return std::min(limit, most_);
  }

private:
  static constexpr double medians = 16;

  milliseconds first(uint64_t units) const {
    double ns = 0;
    if (count_ > 0) {
      auto known = last_;
      const auto end = known.begin() + static_cast<ptrdiff_t>(std::min(count_, known.size()));
      const auto middle = known.begin() + (end - known.begin()) / 2;
      std::nth_element(known.begin(), middle, end);
      ns = *middle * medians * static_cast<double>(units + fixed_);
    } else if (slowest_ > 0) {
      ns = 1e9 * static_cast<double>(units) / static_cast<double>(slowest_)
           + 1e6 * static_cast<double>(least.count());
    } else {
      return most_;
    }
    const auto ms = std::llround(std::min(ns / 1e6, static_cast<double>(most_.count())));
    return std::max(least, milliseconds{ms});
  }

  uint64_t fixed_;
  milliseconds most_;
  uint64_t slowest_;
  std::array<double, 32> last_{}; ///< nanoseconds for a unit
  size_t count_ = 0;
};

} // namespace lamella::scheduler
