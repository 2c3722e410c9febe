/// The project's own matrix product for CUDA devices, in several shapes of tile that all compute
/// the same bytes.
#pragma once

#include "gpu/cuda/numbers/dense.hpp"
#include "gpu/cuda/numbers/split_tickets.hpp"

#include <cuda_runtime_api.h>

#include <string_view>

namespace lamella::gpu::cuda {

/// One product x[M, K] * w[N, K]^T, both of `type`, with fp32 sums.
struct product {
  dense_type type;
  uint32_t rows, outputs, inputs;
  const void* w; ///< [N, K], 16-byte aligned
  const void* x; ///< [M, K], 16-byte aligned
  float* out;    ///< [M, out_stride], the first N of each row are written
  uint32_t out_stride;
};

/// Into how many parts K is cut: a function of the weight's shape alone. Parts are summed in
/// ascending order. More than one only where a weight has too few outputs to occupy a device.
uint32_t splits_of(uint32_t outputs, uint32_t inputs);

/// Inputs of every split but perhaps the last, a multiple of 128.
uint32_t inputs_per_split(uint32_t inputs, uint32_t splits);

/// Kernels, by index. The first mma_sync_variants() run on every device from sm_80 on, where their
/// tiles fit into a block's shared memory, and compute the same bytes as each other. The others use
/// the matrix instructions of sm_90a, cannot be launched elsewhere, and compute the same bytes as
/// each other.
uint32_t mma_sync_variants();
uint32_t mma_variants();
std::string_view mma_variant_name(uint32_t variant); ///< rows of x by rows of w

/// The shape of tile to take where nothing was measured, on a device whose blocks have
/// `shared_most` bytes of shared memory at most: 98,304 or more.
uint32_t default_mma_variant(uint32_t rows, uint32_t outputs, int shared_most);

/// Allows the kernels their shared memory, those that fit into `shared_most`. Once per device,
/// before anything is launched.
cudaError_t prepare_mma(int shared_most);

/// A product, each of `splits` over its share of K. Parts [splits][M][N] are room for more than one
/// split. They are summed as launch_sum_parts does: by the kernel itself where it has a ticket per
/// tile, else by another one.
cudaError_t launch_mma(uint32_t variant, const product& p, uint32_t splits, float* parts,
                       split_tickets tickets, cudaStream_t stream);

/// out[m][n] = ((parts[0] + parts[1]) + parts[2]) + …, in ascending order.
cudaError_t launch_sum_parts(const float* parts, uint32_t splits, uint32_t rows, uint32_t outputs,
                             float* out, uint32_t out_stride, cudaStream_t stream);

} // namespace lamella::gpu::cuda
