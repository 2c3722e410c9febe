#include "gpu/cuda/adapter_memory.hpp"

#include "gpu/cuda/memory.hpp"

#include <algorithm>
#include <mutex>
#include <vector>

#include <unistd.h>

namespace lamella::gpu::cuda {

namespace {

constexpr size_t page = 65536; ///< what GPUDirect registers whole

// A number and a call of the driver's interface, which this part is not linked with.
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
int export_memory(const std::byte* data, size_t bytes, std::string& why) {
  const auto call = find_export();
  if (call == nullptr) {
    why = "no dma-buf: the driver is older than CUDA 11.7";
    return -1;
  }
  int file = -1;
  const int code =
      call(&file, reinterpret_cast<unsigned long long>(data), bytes, dma_buf_handle, 0);
  if (code == 0) return file;
  why = "no dma-buf: error " + std::to_string(code)
        + " of the driver; it needs the open NVIDIA kernel modules and kernel 5.12";
  return -1;
}

/// What one adapter_memory is made of.
struct block {
  block(int on, size_t size, size_t host_size)
      : device{on}, bytes{size}, host_bytes{host_size}, raw{device_memory(size + page)},
        data{raw.get() + (page - reinterpret_cast<uintptr_t>(raw.get()) % page) % page},
        host{pinned_memory(host_size)}, file{export_memory(data, size, why)} {}
  ~block() {
    if (file >= 0) close(file);
  }
  block(const block&) = delete;
  block& operator=(const block&) = delete;

  int device;
  size_t bytes, host_bytes;
  std::shared_ptr<std::byte> raw;
  std::byte* data;
  std::shared_ptr<std::byte> host;
  std::string why; ///< there is no descriptor
  int file;
};

/// Blocks that are not in use. They are given out again and not given back: the links of an epoch
/// go while kernels of the next one wait for each other, and giving back would wait for them.
class spares {
public:
  static spares& get() {
    static auto* one = new spares; // as long as the process: owners may be static
    return *one;
  }
  std::unique_ptr<block> take(int device, size_t bytes, size_t host_bytes) {
    const std::lock_guard lock{mutex_};
    const auto found = std::find_if(blocks_.begin(), blocks_.end(), [&](const auto& x) {
      return x->device == device && x->bytes == bytes && x->host_bytes == host_bytes;
    });
    if (found == blocks_.end()) return nullptr;
    auto x = std::move(*found);
    blocks_.erase(found);
    return x;
  }
  void keep(std::unique_ptr<block> x) {
    const std::lock_guard lock{mutex_};
    blocks_.push_back(std::move(x));
  }

private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<block>> blocks_;
};

} // namespace

adapter_memory make_adapter_memory(int device, const std::string& name, size_t bytes,
                                   size_t host_bytes) {
  check(cudaSetDevice(device), "cudaSetDevice");
  if (const auto ordering = attribute(writes_ordering, device); ordering < ordered_for_owner)
    throw std::runtime_error{name + ": the order of writes from outside is "
                             + std::to_string(ordering)
                             + ", its kernels see them only after a flush by the CPU"};
  const auto whole = (bytes + page - 1) / page * page;
  auto x = spares::get().take(device, whole, host_bytes);
  try {
    if (!x) x = std::make_unique<block>(device, whole, host_bytes);
  } catch (const std::bad_alloc&) {
    throw std::runtime_error{name + " has no room for " + std::to_string(whole)
                             + " bytes of a link's rings"};
  }
  check(cudaMemset(x->data, 0, whole), "cudaMemset");
  check(cudaMemset(x->host.get(), 0, host_bytes), "cudaMemset");
  check(cudaStreamSynchronize(nullptr), "cudaMemset");
  adapter_memory result;
  result.dma_buf = x->file;
  result.how =
      "memory of " + name + (x->file >= 0 ? " by dma-buf" : " by its address (" + x->why + ")");
  const std::shared_ptr<block> owner{
      x.release(), [](block* gone) { spares::get().keep(std::unique_ptr<block>{gone}); }};
  result.data = {owner, owner->data};
  result.host = {owner, owner->host.get()};
  return result;
}

} // namespace lamella::gpu::cuda
