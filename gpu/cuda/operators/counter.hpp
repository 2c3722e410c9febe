/// Counters between streams of one CUDA device.
#pragma once

#include "gpu/device.hpp"

#include <memory>

namespace lamella::gpu::cuda {

/// Raising and waiting are kernels in the current queue; a wait that fails ends its work as the
/// waits of rings do. `device` is current on this thread. Not run on a device yet.
std::shared_ptr<counter> make_device_counter();

} // namespace lamella::gpu::cuda
