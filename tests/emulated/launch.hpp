/// Launches, and what the kernels of rows, draws and matmuls use besides intrinsics.hpp, on the
/// emulated device.
#pragma once

#include "tests/emulated/tail.hpp"

inline int __syncthreads_or(int value) {
  static int any;
  __syncthreads();
  if (threadIdx.x == 0) any = 0;
  __syncthreads();
  any |= value;
  __syncthreads();
  return any;
}

inline unsigned long long atomicAdd(unsigned long long* at, unsigned long long more) {
  const auto before = *at;
  *at += more;
  return before;
}

inline uint64_t __umul64hi(uint64_t a, uint64_t b) {
  __extension__ using wide = unsigned __int128;
  return static_cast<uint64_t>(static_cast<wide>(a) * b >> 64);
}

template <class Kernel> cudaError_t cudaFuncSetAttribute(Kernel*, cudaFuncAttribute, int) {
  return cudaSuccess;
}

namespace lamella::gpu::cuda {

inline unsigned char* dynamic_shared() {
  return reinterpret_cast<unsigned char*>(emulated::current.shared.data());
}

template <class Kernel, class... Args>
void launch_kernel(Kernel kernel, dim3 grid, unsigned threads, size_t shared, cudaStream_t stream,
                   Args... args) {
  count_launch();
  emulated::run_grid(grid, threads, shared, stream, [=] { kernel(args...); });
}

} // namespace lamella::gpu::cuda
