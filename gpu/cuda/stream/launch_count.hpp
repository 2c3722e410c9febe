/// How many kernels this process has put into streams.
#pragma once

#include <atomic>
#include <cstdint>

namespace lamella::gpu::cuda {

/// Relaxed: for benchmarks and tests.
inline std::atomic<uint64_t> kernels_launched{0};

/// By this thread.
inline thread_local uint64_t kernels_launched_here = 0;

/// With every launch, the library's matmuls included.
inline void count_launch() {
  kernels_launched.fetch_add(1, std::memory_order_relaxed);
  ++kernels_launched_here;
}

} // namespace lamella::gpu::cuda
