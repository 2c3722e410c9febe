/// K and V in eight bits on a device: the arithmetic of gpu/kernels/q8.hpp, and the same bytes.
/// Internal linkage, as there.
#pragma once

#include "gpu/kernels/q8.hpp"

#include <cuda_runtime_api.h>

#include <cstdint>

namespace lamella::gpu::cuda {
namespace {

/// Bits of |x|: as integers they are in the order of the numbers, a NaN above all of them.
__device__ inline uint32_t magnitude_bits(float x) { return __float_as_uint(x) & 0x7fffffffu; }

/// The factors of a head; `highest`: the highest of the magnitude_bits that this lane of a whole
/// warp has seen of it.
__device__ inline q8_factors q8_factors_of_warp(uint32_t highest) {
  for (int apart = 16; apart > 0; apart /= 2)
    highest = max(highest, __shfl_xor_sync(0xffffffffu, highest, apart));
  return q8_factors_of(highest);
}

/// One element of a head with these factors.
__device__ inline int32_t q8_of(float x, q8_factors factors) {
  return factors.inverse == 0 ? 0 : q8_rounded(x, factors.inverse);
}

/// A head that the lanes of a whole warp share, `count` neighbours each.
template <int count> struct q8_share {
  float scale;
  int32_t q[count];

  __device__ explicit q8_share(const float (&x)[count]) {
    uint32_t highest = 0;
#pragma unroll
    for (int i = 0; i < count; ++i) highest = max(highest, magnitude_bits(x[i]));
    const auto factors = q8_factors_of_warp(highest);
    scale = factors.scale;
#pragma unroll
    for (int i = 0; i < count; ++i) q[i] = q8_of(x[i], factors);
  }
  /// As attention reads it from a cache, in fp32.
  __device__ void widen(float (&x)[count]) const {
#pragma unroll
    for (int i = 0; i < count; ++i) x[i] = __fmul_rn(scale, static_cast<float>(q[i]));
  }
  __device__ void store(std::byte* head) const {
    const uint32_t lane = threadIdx.x % 32;
    uint32_t word = 0;
#pragma unroll
    for (int i = 0; i < count; ++i) word |= (q[i] & 0xffu) << (8 * i);
    if constexpr (count == 4)
      reinterpret_cast<uint32_t*>(head)[lane] = word;
    else
      reinterpret_cast<uint16_t*>(head)[lane] = static_cast<uint16_t>(word);
    if (lane == 0) reinterpret_cast<uint4*>(head)[2 * count] = {0, 0, 0, __float_as_uint(scale)};
  }
};

} // namespace
} // namespace lamella::gpu::cuda
