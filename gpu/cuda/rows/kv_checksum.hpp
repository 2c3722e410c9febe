/// Checksums of what slots hold, on a CUDA device.
#pragma once

#include "gpu/kernels/operators.hpp"

#include <cuda_runtime_api.h>

namespace lamella::gpu::cuda {

/// `checksum_kv_args` with device memory. A warp per slot, a lane per word: the words of a lane are
/// the coefficients of a polynomial in x^1024 over GF(2), and the CRC is the sum of those of all
/// lanes. About 70 operations a word. Not run on a device yet.
struct kv_checksum {
  const std::byte* rows = nullptr; ///< of the layer
  size_t row_bytes = 0;            ///< a multiple of 4
  const uint32_t* slots = nullptr; ///< [count]
  uint32_t count = 0;
  uint32_t* sums = nullptr; ///< [count], continued; mapped host memory
};
cudaError_t launch_checksum_kv(const kv_checksum& args, cudaStream_t stream);

/// The operator.
void checksum_kv(const checksum_kv_args& args, kernel_context context);

} // namespace lamella::gpu::cuda
