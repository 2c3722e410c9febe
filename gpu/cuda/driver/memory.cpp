#include "gpu/cuda/driver/memory.hpp"

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <new>

namespace lamella::gpu::cuda {

namespace {

/// Out of memory is not a device failure: throw std::bad_alloc.
void check_room(cudaError_t code, const char* what) {
  if (code == cudaErrorMemoryAllocation) {
    cudaGetLastError();
    throw std::bad_alloc{};
  }
  check(code, what);
}

/// Devices that memory was taken of, a bit each.
std::atomic<uint64_t> used_devices{0};

/// The current device, of which memory is taken now.
int device_in_use() {
  int device = 0;
  check(cudaGetDevice(&device), "cudaGetDevice");
  used_devices |= uint64_t{1} << (device % 64);
  return device;
}

/// Calls `free` for memory of `device`, whichever device is current. An error tells of a lost
/// device or of the end of the process: the memory is gone anyway. A thread that has set none has
/// device 0: to set that again would take memory of it for a process that uses others only.
template <class F> void on_device(int device, F free) {
  int before = 0;
  cudaGetDevice(&before);
  cudaSetDevice(device);
  free();
  if ((used_devices >> (before % 64) & 1) != 0) cudaSetDevice(before);
}

/// Pinned memory that is not in use. Lives until the process ends: owners may be static.
class pinned_stock {
public:
  static pinned_stock& get() {
    static auto* one = new pinned_stock;
    return *one;
  }

  std::shared_ptr<std::byte> take(size_t bytes) {
    {
      std::lock_guard lock{mutex_};
      if (const auto at = free_.lower_bound(bytes); at != free_.end() && at->first / 2 <= bytes) {
        const auto [size, data] = *at;
        free_.erase(at);
        return owned(data, size);
      }
    }
    void* p = nullptr;
    check_room(cudaHostAlloc(&p, bytes, cudaHostAllocMapped | cudaHostAllocPortable),
               "cudaHostAlloc");
    return owned(static_cast<std::byte*>(p), bytes);
  }

private:
  std::shared_ptr<std::byte> owned(std::byte* data, size_t size) {
    return {data, [this, size](std::byte* x) {
              std::lock_guard lock{mutex_};
              free_.emplace(size, x);
            }};
  }

  std::mutex mutex_;
  std::multimap<size_t, std::byte*> free_; ///< by size
};

} // namespace

std::shared_ptr<std::byte> device_memory(size_t bytes) {
  auto memory = device_memory(bytes, nullptr);
  check(cudaStreamSynchronize(nullptr), "cudaMallocAsync"); // no work stands in the null stream
  return memory;
}

std::shared_ptr<std::byte> device_memory(size_t bytes, cudaStream_t stream) {
  const int device = device_in_use();
  void* p = nullptr;
  check_room(cudaMallocAsync(&p, std::max<size_t>(bytes, 1), stream), "cudaMallocAsync");
  // Its stream has been drained by then and may be gone.
  return {static_cast<std::byte*>(p),
          [device](std::byte* x) { on_device(device, [x] { cudaFreeAsync(x, nullptr); }); }};
}

std::shared_ptr<std::byte> lasting_memory(size_t bytes) {
  const int device = device_in_use();
  void* p = nullptr;
  check_room(cudaMalloc(&p, std::max<size_t>(bytes, 1)), "cudaMalloc");
  return {static_cast<std::byte*>(p),
          [device](std::byte* x) { on_device(device, [x] { cudaFree(x); }); }};
}

std::shared_ptr<std::byte> pinned_memory(size_t bytes) {
  return pinned_stock::get().take(std::max<size_t>(bytes, 1));
}

} // namespace lamella::gpu::cuda
