/// How many kernels this process has put into streams, and which ones a work has.
#pragma once

#include <atomic>
#include <cstdint>

namespace lamella::gpu::cuda {

/// Relaxed: for benchmarks and tests.
inline std::atomic<uint64_t> kernels_launched{0};

/// By this thread.
inline thread_local uint64_t kernels_launched_here = 0;

/// What the kernels of the work that this thread launches have been, if anybody asks.
inline thread_local uint64_t* launch_signature = nullptr;

/// With every launch, the library's matmuls included; `what` tells kernels apart.
inline void count_launch(uint64_t what) {
  kernels_launched.fetch_add(1, std::memory_order_relaxed);
  ++kernels_launched_here;
  if (launch_signature != nullptr)
    *launch_signature = (*launch_signature ^ what) * 0x100000001b3 + (*launch_signature >> 47);
}
template <class Kernel> void count_launch(Kernel* kernel) {
  count_launch(static_cast<uint64_t>(reinterpret_cast<uintptr_t>(kernel)));
}

} // namespace lamella::gpu::cuda
