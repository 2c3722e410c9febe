/// How kernels of rows, draws and matmuls start, and where their shared memory lies. A test that
/// runs their sources without a device (tests/emulated) brings its own versions.
#pragma once

#include "gpu/cuda/stream/early_launch.cuh"
#include "gpu/cuda/stream/launch_count.hpp"

#include <cuda_runtime_api.h>

#include <cstddef>

#ifndef LAMELLA_EMULATED_DEVICE
namespace lamella::gpu::cuda {

/// The block's dynamic shared memory, at a multiple of 128.
__device__ inline unsigned char* dynamic_shared() {
  extern __shared__ __align__(128) unsigned char block_memory[];
  return block_memory;
}

/// The kernel begins with begin_kernel(), or knows why not. Errors are those of
/// cudaGetLastError().
template <class Kernel, class... Args>
void launch_kernel(Kernel kernel, dim3 grid, unsigned threads, size_t shared, cudaStream_t stream,
                   Args... args) {
  count_launch();
  if (early_launches())
    launch_early(stream, grid, threads, shared, kernel, args...);
  else
    kernel<<<grid, threads, shared, stream>>>(args...);
}

} // namespace lamella::gpu::cuda
#endif
