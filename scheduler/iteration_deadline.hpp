/// Timeout of an iteration, learned from previous iterations (reliability A1: an executor that
/// hangs while its process is alive).
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>

namespace lamella::scheduler {

/// Sixteen times the median of the last 256 iterations, and never less than a second: machines are
/// shared, and timing out too early costs an iteration each time. Doubles with every failure in a
/// row. The first iteration gets `most`; the next three get at least `early`, and a multiple of the
/// longest so far, since rows may join meanwhile. Cost: O(256) each time a new median is taken:
/// after 4, 8 and 16 iterations, then every 32.
class iteration_deadline {
public:
  using milliseconds = std::chrono::milliseconds;
  static constexpr milliseconds least{1000}, early{10'000}, most{60'000};

  void add(std::chrono::nanoseconds took) {
    last_[count_++ % last_.size()] = took;
    if (count_ < 4) {
      const auto longest = *std::max_element(last_.begin(), last_.begin() + count_);
      limit_ = std::clamp(std::chrono::duration_cast<milliseconds>(longest * early_longest), early,
                          most);
    }
    if (count_ % renewed_every == 0 || count_ == 4 || count_ == 8 || count_ == 16) renew();
  }

  /// No iteration has ended yet.
  bool empty() const { return count_ == 0; }

  /// The timeout of the next attempt after `failures` failures in a row; `most` while empty().
  milliseconds next(uint32_t failures) const {
    auto limit = limit_;
    for (uint32_t i = 0; i < failures && limit < most; ++i) limit *= 2;
    return std::min(limit, most);
  }

private:
  static constexpr size_t renewed_every = 32;
  static constexpr int medians = 16, early_longest = 256;

  void renew() {
    auto known = last_;
    const auto end = known.begin() + static_cast<ptrdiff_t>(std::min(count_, known.size()));
    const auto middle = known.begin() + (end - known.begin()) / 2;
    std::nth_element(known.begin(), middle, end);
    limit_ = std::clamp(std::chrono::duration_cast<milliseconds>(*middle * medians), least, most);
  }

  std::array<std::chrono::nanoseconds, 256> last_{};
  size_t count_ = 0;
  milliseconds limit_{most}; ///< until one has ended
};

} // namespace lamella::scheduler
