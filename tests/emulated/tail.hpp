/// The end of a kernel on the emulated device: the same counting as on a device, and its posts.
#pragma once

#include "tests/emulated/intrinsics.hpp"

#include "gpu/cuda/stream/kernel_tail.hpp"

#include <atomic>

namespace lamella::gpu::cuda {

inline void end_with(const kernel_tail& tail) {
  if (!tail.posts()) return;
  __syncthreads();
  if (threadIdx.x != 0) return;
  if (++*tail.arrived != gridDim.x * gridDim.y) return;
  *tail.arrived = 0;
  if (tail.port.failed != nullptr && *tail.port.failed != 0) return;
  const auto post = [](uint64_t* word, uint64_t value) {
    std::atomic_ref{*word}.store(value, std::memory_order_release);
  };
  if (tail.sent != nullptr) {
    *tail.slot = tail.header;
    post(tail.sent, tail.sent_value);
  }
  if (tail.released != nullptr) post(tail.released, tail.released_value);
}

} // namespace lamella::gpu::cuda
