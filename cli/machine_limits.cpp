#include "cli/machine_limits.hpp"

#include "gpu/team.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <vector>

namespace lamella::cli {

double measure_read_bandwidth(unsigned threads) {
  constexpr size_t bytes = size_t{512} << 20, piece = size_t{1} << 20;
  std::vector<uint64_t> data(bytes / sizeof(uint64_t), 1);
  gpu::team workers{threads};
  std::atomic<uint64_t> sink{0}; // keeps the sums alive
  double best = 0;
  for (int pass = 0; pass < 6; ++pass) {
    const auto began = std::chrono::steady_clock::now();
    workers.for_each(bytes / piece, [&](size_t i) {
      const auto* p = data.data() + i * (piece / sizeof(uint64_t));
      uint64_t sums[8] = {};
      for (size_t k = 0; k < piece / sizeof(uint64_t); k += 8)
        for (size_t j = 0; j < 8; ++j) sums[j] += p[k + j];
      uint64_t total = 0;
      for (auto s : sums) total += s;
      sink.fetch_add(total, std::memory_order_relaxed);
    });
    const auto took = std::chrono::duration<double>(std::chrono::steady_clock::now() - began);
    best = std::max(best, static_cast<double>(bytes) / took.count() / 1e9);
  }
  return best;
}

} // namespace lamella::cli
