/// A CUDA device behind the device port.
#pragma once

#include "gpu/device.hpp"

#include <memory>
#include <string>

namespace lamella::gpu::cuda {

/// Opens device `index` of this process. One driver thread enqueues the work of all its streams on
/// CUDA streams, up to two works ahead of the device on each, and reports the marks. Throws
/// cuda_error.
///
/// A CUDA error is sticky: the work that hit it ends with `lost`, and so does everything launched
/// later; the device must be reopened by another process.
std::unique_ptr<device> open_device(unsigned index);

} // namespace lamella::gpu::cuda
