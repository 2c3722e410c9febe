#include "gpu/cuda/adapter_memory.hpp"

#include "gpu/cuda/driver/memory.hpp"

#include <algorithm>
#include <map>
#include <mutex>
#include <vector>

#include <unistd.h>

namespace lamella::gpu::cuda {

namespace {

constexpr size_t page = 65536; ///< what GPUDirect registers whole

// A call of the driver's interface, which this part is not linked with.
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
      : device{on}, bytes{size}, host_bytes{host_size}, raw{lasting_memory(size + page)},
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

/// Of a process, by device and host address: where kernels find the page.
std::mutex registers_mutex;
std::map<std::pair<int, std::byte*>, std::byte*> registers;

constexpr size_t register_page = 4096;

std::byte* map_page(int device, const std::string& name, std::byte* base) {
  check(cudaSetDevice(device), "cudaSetDevice");
  const auto code = cudaHostRegister(base, register_page,
                                     cudaHostRegisterPortable | cudaHostRegisterMapped
                                         | cudaHostRegisterIoMemory);
  void* found = nullptr;
  if (code == cudaSuccess || code == cudaErrorHostMemoryAlreadyRegistered) {
    if (code != cudaSuccess) cudaGetLastError(); // for another device
    check(cudaHostGetDevicePointer(&found, base, 0), "cudaHostGetDevicePointer");
    return static_cast<std::byte*>(found);
  }
  cudaGetLastError();
  const auto* help =
      code == cudaErrorNotPermitted ? "; it needs root or the driver's PeerMappingOverride=1" : "";
  throw std::runtime_error{"kernels of " + name
                           + " cannot write the adapter's register: " + cudaGetErrorString(code)
                           + help + "; with net.transport: mlx5_proxy the host rings for them"};
}

} // namespace

uint64_t* map_register(int device, const std::string& name, std::span<uint64_t> bell) {
  auto* at = reinterpret_cast<std::byte*>(bell.data());
  const auto offset = reinterpret_cast<uintptr_t>(at) % register_page;
  if (offset + bell.size_bytes() > register_page)
    throw std::runtime_error{"the adapter's register is not within a page"};
  const std::lock_guard lock{registers_mutex};
  auto& page = registers[{device, at - offset}];
  if (page == nullptr) page = map_page(device, name, at - offset);
  return reinterpret_cast<uint64_t*>(page + offset);
}

adapter_memory make_adapter_memory(int device, const std::string& name, size_t bytes,
                                   size_t host_bytes) {
  check(cudaSetDevice(device), "cudaSetDevice");
  if (const auto ordering = attribute(cudaDevAttrGPUDirectRDMAWritesOrdering, device);
      ordering < cudaGPUDirectRDMAWritesOrderingOwner)
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
