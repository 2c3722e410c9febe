/// Device memory that RDMA adapters reach (GPUDirect; Lamina 4.1).
#pragma once

#include "gpu/device.hpp"

namespace lamella::gpu::cuda {

/// As device::make_adapter_memory, for that device and its name. With a dma-buf where driver and
/// kernel have them; else adapters register the address, which needs the module nvidia_peermem.
/// Rejected where external writes become visible to kernels only after a flush by the CPU: a
/// polling stream could see a seqno before its payload. Memory without owners is cached for the
/// next call of the same sizes. Not run on hardware.
adapter_memory make_adapter_memory(int device, const std::string& name, size_t bytes,
                                   size_t host_bytes);

/// As device::map_register, of that device. Registers of several queues may share a page. Not run
/// on hardware.
uint64_t* map_register(int device, const std::string& name, std::span<uint64_t> bell);

} // namespace lamella::gpu::cuda
