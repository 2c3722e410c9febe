/// Small kernels between a stream and mapped host memory.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

namespace lamella::gpu::cuda {

/// Sets a word of mapped host memory to 1 when everything before it in the stream is done.
cudaError_t launch_raise(uint32_t* word, cudaStream_t stream);

/// Copies `bytes` (rounded up to 16) of mapped host memory to device memory, both 16-byte aligned.
/// A kernel and not a copy engine: copies of several streams may share an engine's queue, and one
/// that stands behind a wait would keep back the copy that this wait needs.
cudaError_t launch_fetch(const std::byte* host, size_t bytes, std::byte* device,
                         cudaStream_t stream);

} // namespace lamella::gpu::cuda
