/// When the batches of a pipeline stop, so that none waits long for the others.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace lamella::scheduler {

/// The newest iteration of a batch that nothing was launched behind.
struct running_iteration {
  std::chrono::nanoseconds began{0};
  std::chrono::nanoseconds takes{0}; ///< as the one before it took; 0: none runs
};

/// More iterations than that change too much of what was expected.
constexpr uint32_t further_most = 4;

/// How many iterations each batch launches behind the one that runs at `now`, so that the first and
/// the last of them to end are as close to each other as can be, where all iterations take as long
/// as they are expected to take: of n batches whose iterations take as long, one begun after the
/// other, none waits for longer than (n - 1) / n of one. One of the batches launches one at most,
/// since what is expected holds for a short time. Of choices that are equally close, the earliest.
/// Cost: O(batches^2 * further_most).
inline std::vector<uint32_t> further_iterations(std::span<const running_iteration> ends,
                                                std::chrono::nanoseconds now = {}) {
  using nanoseconds = std::chrono::nanoseconds;
  const auto end_of = [now](const running_iteration& x, uint32_t further) {
    return std::max(x.began + x.takes, now) + x.takes * further;
  };
  std::vector<uint32_t> best(ends.size());
  std::pair closest{nanoseconds::max(), nanoseconds::max()}; // how far apart, and the last end
  const auto consider = [&](nanoseconds earliest) {
    std::vector<uint32_t> further(ends.size());
    auto begin = nanoseconds::max(), end = nanoseconds::min();
    for (size_t i = 0; i < ends.size(); ++i) {
      const auto& x = ends[i];
      if (x.takes.count() <= 0) continue;
      while (further[i] < further_most && end_of(x, further[i]) < earliest) ++further[i];
      begin = std::min(begin, end_of(x, further[i]));
      end = std::max(end, end_of(x, further[i]));
    }
    if (std::pair{end - begin, end} >= closest) return;
    closest = {end - begin, end};
    best = std::move(further);
  };
  for (const auto& x : ends)
    for (uint32_t further = 0; x.takes.count() > 0 && further <= 1; ++further)
      consider(end_of(x, further));
  return best;
}

} // namespace lamella::scheduler
