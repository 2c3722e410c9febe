/// Timeouts learned from the times of similar work (reliability A1: a device that hangs while its
/// process is alive).
#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace lamella::scheduler {

/// How a timeout follows from what was measured.
struct timeout_rule {
  using milliseconds = std::chrono::milliseconds;
  size_t samples = 32;          ///< the newest ones count
  uint32_t medians = 16;        ///< the timeout is so many times their median
  milliseconds least{}, most{}; ///< `most` is also the timeout while nothing is known
  uint64_t fixed = 0;           ///< cost, in units, of the part that does not grow with the size
  uint64_t slowest = 0; ///< units per second that bound the first work, beyond `least`; 0: `most`
  uint32_t renewed_every = 1; ///< samples until a new median; sooner while there are few
  /// While fewer samples than this are known, the longest counts instead of the median, as the
  /// factor `longests`, and the timeout is at least `early`.
  uint32_t early_samples = 0, longests = 0;
  milliseconds early{};
  uint32_t learned_by_others = 2; ///< factor of what others know, while fewer samples are known
};

/// The times per unit of the newest work give the timeout of the next, scaled to its size. It
/// doubles with every failure in a row. Machines are shared, and timing out too early costs the
/// work each time: hence the large factors. Cost: O(samples) for each new median.
class learned_timeout {
public:
  using milliseconds = std::chrono::milliseconds;

  explicit learned_timeout(const timeout_rule& rule) : rule_{rule} {}

  /// Work of `units` units has taken `took`.
  void add(uint64_t units, std::chrono::nanoseconds took) {
    const auto each = static_cast<double>(took.count()) / cost_of(units);
    if (last_.size() < rule_.samples)
      last_.push_back(each);
    else
      last_[count_ % rule_.samples] = each;
    ++count_;
    const bool few = count_ < rule_.renewed_every && (count_ & (count_ - 1)) == 0;
    if (few || is_early() || count_ % rule_.renewed_every == 0) renew();
  }

  /// No work was measured yet.
  bool empty() const { return count_ == 0; }

  /// The timeout of one unit, once enough samples are known for a median.
  std::optional<milliseconds> learned() const {
    if (empty() || is_early()) return std::nullopt;
    return first(1);
  }

  /// The timeout of work of `units` units after `failures` failures in a row. `of_others`: what
  /// others have learned() of such work; it bounds the timeout while few samples are known.
  milliseconds next(uint64_t units, uint32_t failures = 0,
                    std::optional<milliseconds> of_others = {}) const {
    auto limit = first(units);
    if (of_others && is_early() && !empty()) limit = std::min(limit, beside(units, *of_others));
    for (uint32_t i = 0; i < failures && limit < rule_.most; ++i) limit *= 2;
    return std::min(limit, rule_.most);
  }

private:
  bool is_early() const { return count_ < rule_.early_samples; }
  double cost_of(uint64_t units) const { return static_cast<double>(units + rule_.fixed); }

  void renew() {
    if (is_early()) {
      unit_ns_ = *std::max_element(last_.begin(), last_.end()) * rule_.longests;
      return;
    }
    auto known = last_;
    const auto middle = known.begin() + static_cast<ptrdiff_t>(known.size() / 2);
    std::nth_element(known.begin(), middle, known.end());
    unit_ns_ = *middle * rule_.medians;
  }

  milliseconds first(uint64_t units) const {
    if (empty() && rule_.slowest == 0) return rule_.most;
    const auto ms = empty() ? 1e3 * static_cast<double>(units) / static_cast<double>(rule_.slowest)
                                  + static_cast<double>(rule_.least.count())
                            : unit_ns_ * cost_of(units) / 1e6;
    const auto bounded = std::llround(std::min(ms, static_cast<double>(rule_.most.count())));
    return std::max(is_early() && !empty() ? rule_.early : rule_.least, milliseconds{bounded});
  }

  /// As next(), by the longest sample and by what others know.
  milliseconds beside(uint64_t units, milliseconds of_others) const {
    const auto longest_ns = unit_ns_ / rule_.longests * cost_of(units);
    const milliseconds mine{std::llround(longest_ns * rule_.medians / 1e6)};
    return std::max({rule_.least, mine, of_others * rule_.learned_by_others});
  }

  timeout_rule rule_;
  std::vector<double> last_; ///< nanoseconds per unit
  size_t count_ = 0;
  double unit_ns_ = 0; ///< timeout per unit
};

/// Iterations of a batch, whatever its rows are: one unit each. Rows may join between the first
/// ones.
constexpr timeout_rule timeout_of_iterations{.samples = 256,
                                             .least = std::chrono::seconds{1},
                                             .most = std::chrono::seconds{60},
                                             .renewed_every = 32,
                                             .early_samples = 4,
                                             .longests = 256,
                                             .early = std::chrono::seconds{10}};

/// Iterations of prompts, in units of prefill_work().
constexpr timeout_rule timeout_of_prompts{
    .least = std::chrono::seconds{2}, .most = std::chrono::seconds{60}, .fixed = 64};

/// Pulls of KV, in bytes: complete rows, the same on the devices of both sides.
constexpr timeout_rule timeout_of_pulls{.least = std::chrono::seconds{2},
                                        .most = std::chrono::seconds{20},
                                        .fixed = 1 << 20,
                                        .slowest = 1 << 20};

/// The first iteration of an epoch, in units of prefill_work(), learned from those of earlier
/// epochs: a worker that has just started may have to read its weights first.
constexpr timeout_rule timeout_of_first_iterations{.samples = 16,
                                                   .medians = 256,
                                                   .least = std::chrono::seconds{3},
                                                   .most = std::chrono::seconds{60},
                                                   .fixed = 64,
                                                   .early_samples = 4,
                                                   .longests = 256,
                                                   .early = std::chrono::seconds{10}};

} // namespace lamella::scheduler
