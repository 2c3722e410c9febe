#include "gpu/cuda/adapter_memory.hpp"

#include "gpu/cuda/memory.hpp"

#include <unistd.h>

namespace lamella::gpu::cuda {

namespace {

constexpr size_t page = 65536; ///< what GPUDirect registers whole

// Numbers and a call of the driver's interface, which this part is not linked with.
constexpr auto dma_buf_supported = static_cast<cudaDeviceAttr>(124);
constexpr auto writes_ordering = static_cast<cudaDeviceAttr>(118);
constexpr int ordered_for_owner = 100;
constexpr int dma_buf_handle = 1;
using export_call = int (*)(void* handle, unsigned long long address, size_t bytes, int type,
                            unsigned long long flags);
constexpr unsigned export_version = 11070;

int attribute(cudaDeviceAttr which, int device) {
  int value = 0;
  if (cudaDeviceGetAttribute(&value, which, device) == cudaSuccess) return value;
  cudaGetLastError(); // an older driver does not know it
  return 0;
}

export_call find_export() {
  void* found = nullptr;
  cudaDriverEntryPointQueryResult outcome{};
  constexpr auto name = "cuMemGetHandleForAddressRange";
#if CUDART_VERSION >= 12050
  const auto code =
      cudaGetDriverEntryPointByVersion(name, &found, export_version, cudaEnableDefault, &outcome);
#else
  const auto code = cudaGetDriverEntryPoint(name, &found, cudaEnableDefault, &outcome);
#endif
  if (code != cudaSuccess) cudaGetLastError();
  return code == cudaSuccess && outcome == cudaDriverEntryPointSuccess
             ? reinterpret_cast<export_call>(found)
             : nullptr;
}

/// A descriptor of the memory, or -1 and why there is none.
int export_memory(int device, const std::byte* data, size_t bytes, std::string& why) {
  const auto call = find_export();
  if (call == nullptr || attribute(dma_buf_supported, device) == 0) {
    why = "no dma-buf: needs the open NVIDIA kernel modules and kernel 5.12";
    return -1;
  }
  int file = -1;
  const int code =
      call(&file, reinterpret_cast<unsigned long long>(data), bytes, dma_buf_handle, 0);
  if (code == 0) return file;
  why = "no dma-buf: error " + std::to_string(code) + " of the driver";
  return -1;
}

} // namespace

adapter_memory make_adapter_memory(int device, const std::string& name, size_t bytes,
                                   size_t host_bytes) {
  check(cudaSetDevice(device), "cudaSetDevice");
  if (const auto ordering = attribute(writes_ordering, device); ordering < ordered_for_owner)
    throw std::runtime_error{name + ": the order of writes from outside is "
                             + std::to_string(ordering)
                             + ", its kernels see them only after a flush by the CPU"};
  const auto whole = (bytes + page - 1) / page * page;
  const auto raw = device_memory(whole + page);
  const auto skip = (page - reinterpret_cast<uintptr_t>(raw.get()) % page) % page;
  adapter_memory x;
  auto* data = raw.get() + skip;
  check(cudaMemset(data, 0, whole), "cudaMemset");
  x.host = pinned_memory(host_bytes);
  check(cudaMemset(x.host.get(), 0, host_bytes), "cudaMemset");
  check(cudaStreamSynchronize(nullptr), "cudaMemset");
  std::string why;
  const int file = export_memory(device, data, whole, why);
  x.dma_buf = file;
  x.how = "memory of " + name + (file >= 0 ? " by dma-buf" : " by its address (" + why + ")");
  x.data = std::shared_ptr<std::byte>{data, [raw, file](std::byte*) {
                                        if (file >= 0) close(file);
                                      }};
  return x;
}

} // namespace lamella::gpu::cuda
