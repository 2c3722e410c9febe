/// Memory of a CUDA device, and host memory it can reach.
///
/// The runtime's own calls that free memory wait until the device is idle, and meanwhile other
/// threads may be unable to launch what its kernels wait for: that ends only with their deadlines.
/// Memory is freed whenever a link, a cache or a pool goes, so nothing here frees so: device memory
/// is of the device's pool, and pinned memory is used again.
#pragma once

#include "gpu/cuda/stream/check.hpp"

#include <cstddef>
#include <memory>

namespace lamella::gpu::cuda {

/// Uninitialised memory of the current device, 256-byte aligned, from the device's pool: neither
/// this nor the release waits for kernels. Release it when the work that uses it has ended. Throws
/// std::bad_alloc when the device has no room.
std::shared_ptr<std::byte> device_memory(size_t bytes);

/// The same, for work of `stream` from now on: does not even wait for the memory.
std::shared_ptr<std::byte> device_memory(size_t bytes, cudaStream_t stream);

/// Like device_memory, but for adapters, which cannot reach memory of a pool. Allocation may wait
/// for the device, and the release does: keep it.
std::shared_ptr<std::byte> lasting_memory(size_t bytes);

/// Host memory that every device reads and writes at the same address. Uninitialised. Released
/// memory is kept for others of up to its size and at least half of it. May wait for the device
/// where there is none.
std::shared_ptr<std::byte> pinned_memory(size_t bytes);

} // namespace lamella::gpu::cuda
