/// Times counted as `lamella_iteration_seconds` counts them, where there is no registry to tell.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace lamella {

/// Upper bounds of the buckets of iteration times; what is longer goes to one more.
inline constexpr std::array<std::chrono::nanoseconds, 14> iteration_bounds{{
    std::chrono::microseconds{100},
    std::chrono::microseconds{250},
    std::chrono::microseconds{500},
    std::chrono::milliseconds{1},
    std::chrono::microseconds{2500},
    std::chrono::milliseconds{5},
    std::chrono::milliseconds{10},
    std::chrono::milliseconds{25},
    std::chrono::milliseconds{50},
    std::chrono::milliseconds{100},
    std::chrono::milliseconds{250},
    std::chrono::milliseconds{500},
    std::chrono::milliseconds{1000},
    std::chrono::milliseconds{2500},
}};

/// The bucket of a time.
constexpr size_t iteration_bucket(std::chrono::nanoseconds x) {
  size_t i = 0;
  while (i < iteration_bounds.size() && x > iteration_bounds[i]) ++i;
  return i;
}

/// Grows only. Lock-free: an addition is two atomic ones.
class time_histogram {
public:
  /// One more time.
  void add(std::chrono::nanoseconds x) {
    counts_[iteration_bucket(x)].fetch_add(1, std::memory_order_relaxed);
    total_ns_.fetch_add(static_cast<uint64_t>(x.count()), std::memory_order_relaxed);
  }

  /// All times together.
  uint64_t total_ns() const { return total_ns_.load(std::memory_order_relaxed); }

  /// By bucket, the last one for what is longer than all bounds; empty before the first time.
  std::vector<uint64_t> counts() const {
    std::vector<uint64_t> result;
    bool any = false;
    for (const auto& x : counts_) {
      result.push_back(x.load(std::memory_order_relaxed));
      any |= result.back() > 0;
    }
    return any ? result : std::vector<uint64_t>{};
  }

private:
  std::array<std::atomic<uint64_t>, iteration_bounds.size() + 1> counts_{};
  std::atomic<uint64_t> total_ns_{0};
};

} // namespace lamella
