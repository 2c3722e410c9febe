/// Operators that treat each row by itself, on a CUDA device. The contracts are those of
/// gpu/kernels/operators.hpp; here every pointer is device memory, launches neither allocate nor
/// wait, and all may be captured into a graph. All are memory-bound. A row's bytes depend on that
/// row and its width alone.
#pragma once

#include "gpu/cuda/numbers/dense.hpp"
#include "gpu/cuda/rows/dense_copy.hpp"
#include "gpu/kernels/operators.hpp"

#include <cuda_runtime_api.h>

namespace lamella::gpu::cuda {

/// out = x rounded to `type`, saturating; `count` elements, 16-byte aligned.
cudaError_t launch_narrow(const float* x, size_t count, dense_type type, void* out,
                          cudaStream_t stream);

/// out[m] = row ids[m] of the table, where an id take_sampled means last_sampled[seats[m]]. A row
/// whose id lies outside the table becomes NaN, which sampling reports.
struct embed_rows {
  dense_matrix table;
  const uint32_t* tokens;       ///< [M]
  const uint32_t* seats;        ///< [M]; read only where a token says take_sampled
  const uint32_t* last_sampled; ///< by seat
  uint32_t rows;
  float* out; ///< [M, K]
};
cudaError_t launch_embed(const embed_rows& args, cudaStream_t stream);

/// Pointers are 16-byte aligned where the width is a multiple of 4; args.out may be null where
/// there is a copy. Sums of squares are taken per thread over ascending elements, then in a fixed
/// tree.
cudaError_t launch_rms_norm(const rms_norm_args& args, dense_copy copy, cudaStream_t stream);

/// Both at once, with the same bytes: sum.out = a + b, then its norm; norm.x is sum.out, norm.out
/// is not.
cudaError_t launch_add_rms_norm(const add_args& sum, const rms_norm_args& norm, dense_copy copy,
                                cudaStream_t stream);

/// out = gate / (1 + exp(-gate)) * up; gate and up may lie in one row of a fused product.
struct silu_mul_rows {
  const float *gate, *up; ///< [M, in_stride]
  uint32_t rows, width, in_stride;
  float* out;      ///< [M, width]; may be null when there is a copy
  dense_copy copy; ///< of out
};
cudaError_t launch_silu_mul(const silu_mul_rows& args, cudaStream_t stream);

cudaError_t launch_add(const add_args& args, cudaStream_t stream);

cudaError_t launch_add_bias(const add_bias_args& args, cudaStream_t stream);

cudaError_t launch_scale(const scale_args& args, cudaStream_t stream);

/// out[m] = x[row_index[m]]; rows of `width`.
struct gather_args {
  const float* x;
  const uint32_t* row_index; ///< [rows]
  uint32_t rows, width;
  float* out; ///< [rows, width]
};
cudaError_t launch_gather(const gather_args& args, cudaStream_t stream);

} // namespace lamella::gpu::cuda
