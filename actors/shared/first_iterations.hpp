/// Timeout of the first iteration of an epoch, learned from the first iterations of earlier epochs
/// (reliability A1).
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

namespace lamella::actors {

/// Outlives the pipelines: shared by the launchers of streams of one kind. Thread-safe.
class first_iterations {
public:
  using milliseconds = std::chrono::milliseconds;
  /// A worker that has just started may have to read its weights first.
  static constexpr milliseconds least{10'000}, most{60'000};

  /// A first iteration of `units` units of work has ended. Cost: O(1).
  void add(uint64_t units, std::chrono::nanoseconds took) {
    std::lock_guard lock{mutex_};
    if (last_.size() < known_max) last_.emplace_back();
    last_[count_++ % known_max] = static_cast<double>(took.count()) / cost_of(units);
  }

  /// The timeout of a first iteration of `units` units after `failures` failures in a row: 256
  /// times the median time per unit of the last sixteen; `most` while there are none. Cost: O(16).
  milliseconds limit(uint64_t units, uint32_t failures = 0) const {
    std::lock_guard lock{mutex_};
    if (last_.empty()) return most;
    auto known = last_;
    const auto middle = known.begin() + static_cast<ptrdiff_t>(known.size() / 2);
    std::nth_element(known.begin(), middle, known.end());
    const auto ms = std::min(*middle * cost_of(units) * medians / 1e6, 1.0 * most.count());
    auto result = std::max(least, milliseconds{static_cast<int64_t>(ms)});
    for (uint32_t i = 0; i < failures && result < most; ++i) result *= 2;
    return std::min(result, most);
  }

private:
  static constexpr size_t known_max = 16;
  static constexpr double medians = 256;

  /// The fixed cost counts as 64 units.
  static double cost_of(uint64_t units) { return static_cast<double>(units) + 64; }

  mutable std::mutex mutex_;
  std::vector<double> last_; ///< nanoseconds per unit
  size_t count_ = 0;
};

} // namespace lamella::actors
