/// The GPU part of the program, which is loaded when it is asked for.
///
/// CUDA code lies in a library of its own (liblamella_cuda.so), so that one binary runs with and
/// without a GPU, and can say why it has none.
#pragma once

#include "gpu/device.hpp"

#include <memory>
#include <string>

namespace lamella::gpu {

/// What the library exports. Both sides are built from one source tree: `built_as` must be equal.
struct cuda_module {
  const char* built_as;
  /// Number of devices; 0 with a reason when the driver is missing or too old.
  unsigned (*count)(std::string* reason);
  /// Throws std::runtime_error.
  std::unique_ptr<device> (*open)(unsigned index);
};

/// Version and interface of this build.
const char* cuda_module_build();

/// The library, loaded at the first call from beside the executable, its `lib` neighbour or the
/// system's paths; or null with what stands in the way. Thread-safe.
const cuda_module* find_cuda_module(std::string* reason);

/// Device `index`, counted from 0. Throws std::runtime_error that says what is missing.
std::unique_ptr<device> open_cuda_device(unsigned index);

} // namespace lamella::gpu
