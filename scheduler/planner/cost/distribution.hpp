/// The distribution of a time, from weighted samples, in bounded memory.
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace lamella::scheduler {

/// Mean and maximum are exact; quantiles come from buckets that are 1 % wide, between 1 us and
/// 10,000 hours; times outside fall into the first or last bucket. Without samples, mean, quantiles
/// and maximum are not numbers (NaN): JSON writes them as null, `fixed` as "-", and no limit is
/// exceeded by them.
class distribution {
public:
  /// `weight` samples of `seconds`; none where the weight is 0.
  void add(double seconds, double weight = 1) {
    if (!(weight > 0)) return;
    weights_[bucket_of(seconds)] += weight;
    total_ += weight;
    sum_ += seconds * weight;
    if (!(seconds <= max_)) max_ = seconds;
  }

  /// All samples of another one.
  void add(const distribution& x) {
    for (size_t i = 0; i < buckets; ++i) weights_[i] += x.weights_[i];
    total_ += x.total_;
    sum_ += x.sum_;
    max_ = std::fmax(max_, x.max_);
  }

  double count() const { return total_; }
  double sum() const { return sum_; }
  double mean() const { return total_ > 0 ? sum_ / total_ : nothing; }
  double max() const { return max_; }

  /// The value that a share `q` of the samples does not exceed, within 1 %.
  double quantile(double q) const {
    if (count() == 0) return nothing;
    double seen = 0;
    for (size_t i = 0; i < buckets; ++i) {
      seen += weights_[i];
      if (seen >= q * total_)
        return std::fmin(max_, least * std::exp((static_cast<double>(i) + 0.5) / steps));
    }
    return max_;
  }

private:
  static constexpr double nothing = std::numeric_limits<double>::quiet_NaN();
  static constexpr double least = 1e-6, steps = 100; ///< buckets per factor of e
  static constexpr size_t buckets = 3140;            ///< least * e^31.4 = 4.3e7 s

  static size_t bucket_of(double seconds) {
    if (!(seconds > least)) return 0;
    const auto at = std::log(seconds / least) * steps;
    return at < buckets - 1 ? static_cast<size_t>(at) : buckets - 1;
  }

  std::array<double, buckets> weights_{};
  double total_ = 0, sum_ = 0, max_ = nothing;
};

} // namespace lamella::scheduler
