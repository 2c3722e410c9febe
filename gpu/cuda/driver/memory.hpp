/// Memory of a CUDA device, and host memory it can reach.
///
/// Giving memory back may wait until the device is idle, and the last owner may be a driver thread,
/// for which streams wait that wait for each other. So a thread of its own gives it back, later.
#pragma once

#include "gpu/cuda/stream/check.hpp"

#include <cstddef>
#include <memory>

namespace lamella::gpu::cuda {

/// Uninitialised memory of the current device, 256-byte aligned. May wait for the device. Throws
/// std::bad_alloc when it has no room.
std::shared_ptr<std::byte> device_memory(size_t bytes);

/// Like device_memory, but from the device's pool: neither this nor giving it back waits for
/// kernels, so a stream may grow while another one polls. Valid for work of `stream` from now on.
std::shared_ptr<std::byte> pool_memory(size_t bytes, cudaStream_t stream);

/// Host memory that every device reads and writes at the same address. Uninitialised. May wait for
/// the device.
std::shared_ptr<std::byte> pinned_memory(size_t bytes);

/// Returns when all memory that was given up before this call has been given back. Waits for the
/// devices it is of: for times at which nothing runs that could wait for the caller.
void wait_until_given_back();

} // namespace lamella::gpu::cuda
