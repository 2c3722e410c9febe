/// The CUDA module of the program, loaded on demand.
///
/// CUDA code lies in a library of its own (liblamella_cuda.so), so that one binary runs with and
/// without a GPU, and can report why there is none.
#pragma once

#include "gpu/device.hpp"

#include <memory>
#include <string>
#include <vector>

namespace lamella::gpu {

/// What the library exports. Both sides are built from one source tree: `built_as` must be equal.
struct cuda_module {
  const char* built_as;
  /// Number of devices; 0 with a reason when the driver is missing or too old.
  unsigned (*count)(std::string* reason);
  /// Throws std::runtime_error.
  std::unique_ptr<device> (*open)(unsigned index);
  /// Of two devices why they cannot reach each other's memory; empty when they can. Throws
  /// std::runtime_error.
  std::string (*peers)(unsigned a, unsigned b);
};

/// Version and interface of this build.
const char* cuda_module_build();

/// A library, or the reason why it cannot be loaded.
struct loaded_cuda_module {
  const cuda_module* module = nullptr;
  std::string reason;
};

/// The first of these libraries that can be used. The reason is the first one's: a file beside the
/// program that is broken, or lacks a library of its own, says more than a later name that is not
/// there.
loaded_cuda_module load_cuda_module(const std::vector<std::string>& paths);

/// The library, loaded at the first call from beside the executable, its `lib` neighbour or the
/// system's paths; or null with the reason. Thread-safe.
const cuda_module* find_cuda_module(std::string* reason);

/// Of two CUDA devices why they cannot reach each other's memory, so that rings between them lie in
/// the host's; empty when they can.
std::string why_apart(unsigned a, unsigned b);

/// Number of CUDA devices; 0 without a GPU part.
unsigned cuda_devices();

/// Why there is no device `index`, without opening it; empty where there is one.
std::string why_no_cuda_device(unsigned index);

/// Device `index`, counted from 0. Throws std::runtime_error with the missing prerequisite.
std::unique_ptr<device> open_cuda_device(unsigned index);

} // namespace lamella::gpu
