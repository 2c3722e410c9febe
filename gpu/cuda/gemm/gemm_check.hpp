/// What choosing an algorithm needs on the device: random inputs, and bytes compared there.
#pragma once

#include "gpu/cuda/numbers/dense.hpp"

#include <cuda_runtime_api.h>

namespace lamella::gpu::cuda {

/// `count` numbers of about unit variance, a function of (seed, index); 2-byte aligned.
cudaError_t launch_fill_random(dense_type type, void* out, size_t count, uint64_t seed,
                               cudaStream_t stream);

/// Adds to *differences how many of `count` floats differ in any bit. NaN equals itself.
cudaError_t launch_count_differences(const float* a, const float* b, size_t count,
                                     unsigned long long* differences, cudaStream_t stream);

} // namespace lamella::gpu::cuda
