#include "gpu/cuda/gemm/gemm_check.hpp"
#include "gpu/cuda/numbers/halves.cuh"

#include <algorithm>

namespace lamella::gpu::cuda {

namespace {

constexpr uint32_t threads = 256;

uint32_t blocks_for(size_t count) {
  return static_cast<uint32_t>(std::min<size_t>((count + threads - 1) / threads, 1 << 16));
}

/// The finaliser of splitmix64: all bits of the result depend on all bits of x.
__device__ uint64_t mixed(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

template <class T> __global__ void fill_random(T* out, size_t count, uint64_t seed) {
  for (size_t i = size_t{blockIdx.x} * threads + threadIdx.x; i < count;
       i += size_t{gridDim.x} * threads) {
    const uint64_t bits = mixed(seed + (i + 1) * 0x9e3779b97f4a7c15ull);
    // Four uniform 16-bit numbers: nearly normal, variance 4/12 of the unit square.
    float sum = 0;
    for (int part = 0; part < 4; ++part)
      sum += static_cast<float>(bits >> (16 * part) & 0xffff) * 0x1p-16f - 0.5f;
    out[i] = narrow_saturating<T>(sum * 1.7320508f);
  }
}

__global__ void count_differences(const uint32_t* a, const uint32_t* b, size_t count,
                                  unsigned long long* differences) {
  unsigned long long mine = 0;
  for (size_t i = size_t{blockIdx.x} * threads + threadIdx.x; i < count;
       i += size_t{gridDim.x} * threads)
    mine += a[i] != b[i] ? 1 : 0;
  if (mine != 0) atomicAdd(differences, mine);
}

} // namespace

cudaError_t launch_fill_random(dense_type type, void* out, size_t count, uint64_t seed,
                               cudaStream_t stream) {
  if (count == 0) return cudaSuccess;
  if (type == dense_type::f16)
    fill_random<<<blocks_for(count), threads, 0, stream>>>(static_cast<__half*>(out), count, seed);
  else
    fill_random<<<blocks_for(count), threads, 0, stream>>>(static_cast<__nv_bfloat16*>(out), count,
                                                           seed);
  return cudaGetLastError();
}

cudaError_t launch_count_differences(const float* a, const float* b, size_t count,
                                     unsigned long long* differences, cudaStream_t stream) {
  if (count == 0) return cudaSuccess;
  count_differences<<<blocks_for(count), threads, 0, stream>>>(reinterpret_cast<const uint32_t*>(a),
                                                               reinterpret_cast<const uint32_t*>(b),
                                                               count, differences);
  return cudaGetLastError();
}

} // namespace lamella::gpu::cuda
