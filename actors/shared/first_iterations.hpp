/// How long the first iteration of an epoch may take, of which the epoch itself knows nothing yet:
/// learnt from the first ones of earlier epochs (reliability A1).
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

namespace lamella::actors {

/// Outlives the pipelines: shared by those who launch on streams of one kind. Thread-safe.
class first_iterations {
public:
  using milliseconds = std::chrono::milliseconds;
  /// A worker that has just begun may have to read its weights first.
  static constexpr milliseconds least{10'000}, most{60'000};

  /// One of so many units of work has ended. Cost: O(1).
  void add(uint64_t units, std::chrono::nanoseconds took) {
    std::lock_guard lock{mutex_};
    if (last_.size() < known_max) last_.emplace_back();
    last_[count_++ % known_max] = static_cast<double>(took.count()) / cost_of(units);
  }

  /// For one of so many units that has failed so often in a row: 256 times what the median of the
  /// last sixteen makes of it; `most` while there are none. Cost: O(16).
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

  /// What does not grow with the work is worth 64 units.
  static double cost_of(uint64_t units) { return static_cast<double>(units) + 64; }

  mutable std::mutex mutex_;
  std::vector<double> last_; ///< nanoseconds a unit
  size_t count_ = 0;
};

} // namespace lamella::actors
