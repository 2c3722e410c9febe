/// The end of a kernel that posts (kernel_tail.hpp). A test that runs kernels without a device
/// (tests/emulated) brings its own.
#pragma once

#include "gpu/cuda/stream/kernel_tail.hpp"

#ifndef LAMELLA_EMULATED_DEVICE
#include "gpu/cuda/stream/channel.cuh"

namespace lamella::gpu::cuda {

/// Called by all threads of all blocks at their end, or by none. Every block's writes and reads
/// are ordered before the posts: by the barrier within a block, by the counter between blocks.
__device__ inline void end_with(const kernel_tail& tail) {
  if (tail.sent == nullptr && tail.released == nullptr) return;
  __syncthreads();
  if (threadIdx.x != 0 || !last_block(tail.arrived, gridDim.x * gridDim.y)) return;
  if (has_failed(tail.port)) return;
  if (tail.sent != nullptr) {
    *tail.slot = tail.header;
    store_release(tail.sent, tail.sent_value);
  }
  if (tail.released != nullptr) store_release(tail.released, tail.released_value);
}

} // namespace lamella::gpu::cuda
#endif
