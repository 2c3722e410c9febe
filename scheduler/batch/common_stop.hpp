/// When the batches of a pipeline stop, so that none waits long for the others.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <span>
#include <vector>

namespace lamella::scheduler {

/// The newest iteration of a batch that nothing was launched behind.
struct running_iteration {
  std::chrono::nanoseconds began{0};
  std::chrono::nanoseconds takes{0}; ///< as the one before it took; 0: none runs
};

/// More iterations than that change too much of what was expected.
constexpr uint32_t further_most = 4;

/// How many iterations each batch launches behind the one that runs, so that all end theirs at
/// about the time at which the last of these ends: half an iteration earlier or later at most,
/// where all iterations take as long as they are expected to take.
inline std::vector<uint32_t> further_iterations(std::span<const running_iteration> ends) {
  std::chrono::nanoseconds last{0};
  for (const auto& x : ends)
    if (x.takes.count() > 0) last = std::max(last, x.began + x.takes);
  std::vector<uint32_t> further;
  for (const auto& x : ends) {
    const auto left = last - x.began - x.takes;
    const auto count = x.takes.count() > 0 ? (left + x.takes / 2) / x.takes : 0;
    further.push_back(static_cast<uint32_t>(std::clamp<int64_t>(count, 0, further_most)));
  }
  return further;
}

} // namespace lamella::scheduler
