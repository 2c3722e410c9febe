/// The kernels behind mma_gemm.hpp, as its sources share them.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace lamella::gpu::cuda {

/// One product as a kernel sees it.
struct mma_gemm_args {
  const void* w; ///< [N, K]
  const void* x; ///< [M, K]
  float* out;    ///< [M, out_stride] of split 0
  uint32_t rows, outputs, inputs, out_stride;
  uint32_t inputs_per_split; ///< a multiple of 128; split z takes [z, z + 1) of them
  size_t split_stride;       ///< elements between the outputs of two splits
  uint32_t* tickets;         ///< zeros, one per tile: its last split sums all of them; null: no sum
  float* sum;                ///< [M, sum_stride]: where it goes
  uint32_t sum_stride;
};

/// One shape of tile; functions by dense_type.
struct mma_variant {
  std::string_view name;  ///< rows of x by rows of w
  uint32_t rows, outputs; ///< of a tile
  int shared_bytes;       ///< of a block
  cudaError_t (*prepare[2])();
  cudaError_t (*launch[2])(const mma_gemm_args&, uint32_t splits, cudaStream_t);
};

/// Those of wgmma_gemm.cu.
std::span<const mma_variant> wgmma_variants();

} // namespace lamella::gpu::cuda
