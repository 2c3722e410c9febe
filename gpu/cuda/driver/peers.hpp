/// Devices of one host that reach each other's memory.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>

namespace lamella::gpu::cuda {

/// Enables peer access between two devices. Returns the reason on failure; empty on success, or for
/// one device. Changes the current device.
std::optional<std::string> join_peers(int a, int b);

/// Zeroed memory for a ring from a stream of `sender` to one of `receiver`: the receiver's own
/// where both reach it, so that frames go from device to device and the receiver polls what is
/// near; else of the host, which both map. Waits for the device. Throws cuda_error, std::bad_alloc.
std::shared_ptr<std::byte> peer_ring_memory(int sender, int receiver, size_t bytes);

} // namespace lamella::gpu::cuda
