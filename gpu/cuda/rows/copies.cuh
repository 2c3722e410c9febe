/// 16-bit copies of what a kernel writes, for the next product (rows.hpp).
#pragma once

#include "gpu/cuda/numbers/halves.cuh"
#include "gpu/cuda/rows/dense_copy.hpp"

namespace lamella::gpu::cuda {

template <class V, class T> struct narrow_of;
template <class T> struct narrow_of<float, T> { using type = T; };
template <class T> struct narrow_of<float4, T> { using type = four<T>; };

/// Element i of the 16-bit copy; V is float or float4.
template <class V> __device__ inline void copy_one(const dense_copy& copy, size_t i, V value) {
  if (copy.out == nullptr) return;
  if (copy.type == dense_type::f16)
    static_cast<typename narrow_of<V, __half>::type*>(copy.out)[i] =
        narrow_saturating<__half>(value);
  else
    static_cast<typename narrow_of<V, __nv_bfloat16>::type*>(copy.out)[i] =
        narrow_saturating<__nv_bfloat16>(value);
}

} // namespace lamella::gpu::cuda
