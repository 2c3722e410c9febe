/// Moving rows between KV caches on a CUDA device.
#pragma once

#include "gpu/kernels/operators.hpp"

#include <cuda_runtime_api.h>

namespace lamella::gpu::cuda {

/// Words that copies add their digest to, block by block.
constexpr uint32_t digest_parts = 64;

/// `copy_kv_args` with device memory. Rows in turn go to at most digest_parts blocks, a thread per
/// word. Not run on a device yet.
struct kv_copy {
  std::byte* cache = nullptr;        ///< the layer's rows
  size_t row_bytes = 0;              ///< of the cache
  size_t k_offset = 0, v_offset = 0; ///< of the heads, in a row of the cache
  uint32_t half_words = 0;           ///< words of K (and of V) in a packed row
  const slot_run* runs = nullptr;
  uint32_t run_count = 0, rows = 0;
  std::byte* packed = nullptr;
  uint64_t first_word = 0;
  uint64_t* digests = nullptr; ///< [digest_parts]: their sum grows by the digest of the rows. In
                               ///< mapped host memory; one copy after the other in a stream
  bool add = false;            ///< scatter: XOR
};
cudaError_t launch_gather_kv(const kv_copy& args, cudaStream_t stream);
cudaError_t launch_scatter_kv(const kv_copy& args, cudaStream_t stream);

/// The operators.
void gather_kv(const copy_kv_args& args, kernel_context context);
void scatter_kv(const copy_kv_args& args, kernel_context context);

} // namespace lamella::gpu::cuda
