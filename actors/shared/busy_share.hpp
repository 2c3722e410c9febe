/// How busy a device was over the last seconds.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <deque>

namespace lamella::actors {

/// Made of a counter of busy time, whenever somebody looks. The share is over `window` at least,
/// longer where nobody has looked for longer.
class busy_share {
public:
  using time_point = std::chrono::steady_clock::time_point;
  static constexpr std::chrono::milliseconds window{3'000}, between_marks{500};

  /// From 0 to 1; below 0 where the first look was a moment ago.
  double look(time_point now, uint64_t busy_ns) {
    while (marks_.size() > 1 && now - marks_[1].at >= window) marks_.pop_front();
    if (marks_.empty() || now - marks_.back().at >= between_marks) marks_.push_back({now, busy_ns});
    const auto& first = marks_.front();
    const auto passed = std::chrono::duration<double, std::nano>(now - first.at).count();
    if (now - first.at < between_marks || busy_ns < first.busy_ns) return -1;
    return std::clamp(static_cast<double>(busy_ns - first.busy_ns) / passed, 0., 1.);
  }

private:
  struct mark {
    time_point at;
    uint64_t busy_ns = 0;
  };
  std::deque<mark> marks_; ///< of one window, the oldest first
};

} // namespace lamella::actors
