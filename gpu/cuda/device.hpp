/// A CUDA device behind the device port.
#pragma once

#include "gpu/device.hpp"

#include <memory>
#include <string>

namespace lamella::gpu::cuda {

/// Opens device `index` of this process. One driver thread puts the work of all its streams into
/// CUDA streams, up to two works ahead of the device on each, and tells the marks. Throws
/// cuda_error.
///
/// A CUDA error is sticky: the work that met it ends with `lost`, and so does everything launched
/// later; the device has to be opened by another process.
std::unique_ptr<device> open_device(unsigned index);

} // namespace lamella::gpu::cuda
