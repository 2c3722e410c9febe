/// 16-bit floats in device code.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

namespace lamella::gpu::cuda {

/// Rounds to nearest, ties to even. Finite values beyond the range of f16 become its largest;
/// infinity and NaN stay what they are, so that a broken row is still seen at its end.
template <class T> __device__ inline T narrow_saturating(float value);

template <> __device__ inline __half narrow_saturating<__half>(float value) {
  constexpr float largest = 65504.0f;
  const float magnitude = fabsf(value);
  if (magnitude > largest && magnitude <= 3.402823466e+38f) value = copysignf(largest, value);
  return __float2half_rn(value);
}

/// bf16 has the range of fp32: values round to infinity only in the last 2^-9 of it.
template <> __device__ inline __nv_bfloat16 narrow_saturating<__nv_bfloat16>(float value) {
  return __float2bfloat16_rn(value);
}

__device__ inline float widen(__half value) { return __half2float(value); }
__device__ inline float widen(__nv_bfloat16 value) { return __bfloat162float(value); }

/// Four of them at once, 8-byte aligned.
template <class T> struct alignas(8) four { T v[4]; };

template <class T> __device__ inline four<T> narrow_saturating(float4 x) {
  return {{narrow_saturating<T>(x.x), narrow_saturating<T>(x.y), narrow_saturating<T>(x.z),
           narrow_saturating<T>(x.w)}};
}

template <class T> __device__ inline float4 widen(const four<T>& x) {
  return {widen(x.v[0]), widen(x.v[1]), widen(x.v[2]), widen(x.v[3])};
}

} // namespace lamella::gpu::cuda
