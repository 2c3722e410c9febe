/// How many blocks of a kernel a device holds at once, asked once.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

namespace lamella::gpu::cuda {

/// Of the present device; the kernel may then use that much shared memory there. The first call for
/// a kernel, a shape and a device asks the runtime, which takes longer than a launch; others look
/// it up. Thread-safe.
cudaError_t resident_blocks_of(const void* kernel, unsigned threads, size_t shared, int& blocks);

} // namespace lamella::gpu::cuda
