#include "gpu/cuda/stream/early_launch.cuh"

#include <cstdlib>
#include <cstring>

namespace lamella::gpu::cuda {

namespace {

/// Graphs take such launches since CUDA 12.3.
constexpr int version_least = 12'030;

bool all_devices_can() {
  int count = 0, driver = 0;
  if (CUDART_VERSION < version_least || cudaDriverGetVersion(&driver) != cudaSuccess
      || driver < version_least || cudaGetDeviceCount(&count) != cudaSuccess)
    return false;
  for (int device = 0; device < count; ++device) {
    int major = 0;
    if (cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device) != cudaSuccess
        || major < 9)
      return false;
  }
  return count > 0;
}

} // namespace

bool early_launches() {
  static const bool on = [] {
    const char* x = std::getenv("LAMELLA_EARLY_LAUNCH");
    return (x == nullptr || std::strcmp(x, "0") != 0) && all_devices_can();
  }();
  return on;
}

} // namespace lamella::gpu::cuda
