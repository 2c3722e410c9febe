/// A ring between two devices of one process, whatever they are.
#pragma once

#include "gpu/device.hpp"
#include "gpu/ring/ring_end.hpp"

namespace lamella::gpu {

/// Both ends of one direction.
struct device_ring {
  std::shared_ptr<channel_sender> to;
  std::shared_ptr<channel_receiver> from;
};

/// A new, empty ring in memory that both devices reach: the host's, the device's own, or host
/// memory that a device maps. Throws std::bad_alloc.
device_ring make_device_ring(device& sender, device& receiver, const ring_terms& terms);

} // namespace lamella::gpu
