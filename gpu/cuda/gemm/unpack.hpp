/// Weights of a file as dense 16-bit matrices, made on the device when a model is loaded.
#pragma once

#include "gpu/cuda/numbers/dense.hpp"

#include <cuda_runtime_api.h>

namespace lamella::gpu::cuda {

/// out[n][k] = the stored value of row n, element k, as dense_type_of(type).
///
/// BF16 and F16 are copied. Quantised blocks are expanded in fp32 exactly (matmuls have at most 24
/// significant bits; adding a minimum rounds once) and rounded to f16, nearest, ties to even: an
/// error of 2^-12 of the value, far below that of the quantisation. F32 is rounded to f16 the same
/// way; below 2^-14 the error is 2^-25 absolute. Finite values beyond 65504 become 65504 with their
/// sign.
///
/// `blocks` are row_bytes(type, inputs) * outputs bytes as they lie in the file.
/// Memory-bound: reads the blocks, writes 2 * N * K bytes.
cudaError_t launch_unpack(model::tensor_type type, const void* blocks, uint32_t outputs,
                          uint32_t inputs, void* out, cudaStream_t stream);

} // namespace lamella::gpu::cuda
