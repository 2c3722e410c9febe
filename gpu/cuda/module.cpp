#include "gpu/cuda/device.hpp"
#include "gpu/cuda/driver/peers.hpp"
#include "gpu/cuda/stream/check.hpp"
#include "gpu/cuda_module.hpp"

#include <cstdlib>

namespace lamella::gpu::cuda {

namespace {

/// Before the first CUDA call of the process. Kernels are loaded at once and not when first used,
/// because loading waits for kernels that run, and those may wait for the one to be loaded; and
/// streams get queues of their own, because one that waits must not keep back another.
const bool prepared = [] {
  setenv("CUDA_MODULE_LOADING", "EAGER", 0);
  setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);
  setenv("NCCL_RUNTIME_CONNECT", "0", 0); // connections are made with the communicator
  return true;
}();

unsigned count(std::string* reason) {
  int devices = 0;
  const auto code = cudaGetDeviceCount(&devices);
  if (code == cudaSuccess && devices > 0) return static_cast<unsigned>(devices);
  cudaGetLastError();
  if (reason != nullptr)
    *reason = code == cudaSuccess || code == cudaErrorNoDevice
                  ? std::string{"the driver reports no device"}
              : code == cudaErrorInsufficientDriver
                  ? "no NVIDIA driver is loaded, or it is too old for CUDA "
                        + std::to_string(CUDART_VERSION / 1000) + "."
                        + std::to_string(CUDART_VERSION % 1000 / 10)
                  : std::string{cudaGetErrorString(code)};
  return 0;
}

std::string peers(unsigned a, unsigned b) {
  return join_peers(static_cast<int>(a), static_cast<int>(b)).value_or(std::string{});
}

} // namespace

} // namespace lamella::gpu::cuda

extern "C" __attribute__((visibility("default"))) const lamella::gpu::cuda_module*
lamella_cuda_module() {
  using namespace lamella::gpu;
  static const cuda_module module{cuda_module_build(), cuda::count, cuda::open_device, cuda::peers};
  return &module;
}
