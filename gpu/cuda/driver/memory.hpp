/// Memory of a CUDA device, and host memory it can reach.
///
/// Freeing memory may wait until the device is idle, and the last owner may be a driver thread that
/// other streams wait for, which could deadlock. So a separate thread frees it later.
#pragma once

#include "gpu/cuda/stream/check.hpp"

#include <cstddef>
#include <memory>

namespace lamella::gpu::cuda {

/// Uninitialised memory of the current device, 256-byte aligned. May wait for the device. Throws
/// std::bad_alloc when it has no room.
std::shared_ptr<std::byte> device_memory(size_t bytes);

/// Like device_memory, but from the device's pool: neither allocation nor release waits for
/// kernels, so a stream may grow while another one polls. Valid for work of `stream` from now on.
std::shared_ptr<std::byte> pool_memory(size_t bytes, cudaStream_t stream);

/// Host memory that every device reads and writes at the same address. Uninitialised. May wait for
/// the device.
std::shared_ptr<std::byte> pinned_memory(size_t bytes);

/// Returns when all memory released before this call is freed. Waits for its devices: call when no
/// running work could wait for the caller.
void wait_until_given_back();

} // namespace lamella::gpu::cuda
