#include "gpu/cuda/driver/memory.hpp"

#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <new>
#include <thread>

namespace lamella::gpu::cuda {

namespace {

using give_back_call = cudaError_t (*)(void*);

/// Gives memory back in the background, in order.
class undertaker {
public:
  /// Lives until the process ends: memory may be given back by other static objects.
  static undertaker& get() {
    static auto* one = new undertaker;
    return *one;
  }

  void give_back(void* p, give_back_call how, int device) {
    {
      std::lock_guard lock{mutex_};
      queue_.push_back({p, how, device});
      ++taken_;
    }
    wake_.notify_one();
  }

  /// Until all that was given up before has been given back.
  void wait() {
    std::unique_lock lock{mutex_};
    returned_changed_.wait(lock, [this, all = taken_] { return returned_ >= all; });
  }

private:
  struct entry {
    void* p;
    give_back_call how;
    int device;
  };

  undertaker() {
    std::thread{[this] { run(); }}.detach();
  }

  void run() {
    std::unique_lock lock{mutex_};
    while (true) {
      wake_.wait(lock, [this] { return !queue_.empty(); });
      const auto next = queue_.front();
      queue_.pop_front();
      lock.unlock();
      cudaSetDevice(next.device); // the stream that frees memory of a pool is that device's
      next.how(next.p);           // an error tells of a lost device: its memory is gone anyway
      lock.lock();
      ++returned_;
      returned_changed_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable wake_, returned_changed_;
  std::deque<entry> queue_;
  uint64_t taken_ = 0, returned_ = 0; ///< pieces of memory so far
};

/// Memory of the current device, or of the host.
std::shared_ptr<std::byte> owned(void* p, give_back_call how) {
  int device = 0;
  cudaGetDevice(&device);
  return {static_cast<std::byte*>(p),
          [how, device](std::byte* x) { undertaker::get().give_back(x, how, device); }};
}

/// Out of memory is not a device failure: throw std::bad_alloc.
void check_room(cudaError_t code, const char* what) {
  if (code == cudaErrorMemoryAllocation) {
    cudaGetLastError();
    throw std::bad_alloc{};
  }
  check(code, what);
}

} // namespace

std::shared_ptr<std::byte> device_memory(size_t bytes) {
  void* p = nullptr;
  auto code = cudaMalloc(&p, std::max<size_t>(bytes, 1));
  if (code == cudaErrorMemoryAllocation) { // what makes room may still be on its way back
    cudaGetLastError();
    wait_until_given_back();
    code = cudaMalloc(&p, std::max<size_t>(bytes, 1));
  }
  check_room(code, "cudaMalloc");
  return owned(p, [](void* x) { return cudaFree(x); });
}

std::shared_ptr<std::byte> pool_memory(size_t bytes, cudaStream_t stream) {
  void* p = nullptr;
  check_room(cudaMallocAsync(&p, std::max<size_t>(bytes, 1), stream), "cudaMallocAsync");
  // Its stream has been drained by then and may be gone.
  return owned(p, [](void* x) { return cudaFreeAsync(x, nullptr); });
}

std::shared_ptr<std::byte> pinned_memory(size_t bytes) {
  void* p = nullptr;
  check_room(
      cudaHostAlloc(&p, std::max<size_t>(bytes, 1), cudaHostAllocMapped | cudaHostAllocPortable),
      "cudaHostAlloc");
  return owned(p, [](void* x) { return cudaFreeHost(x); });
}

void wait_until_given_back() { undertaker::get().wait(); }

} // namespace lamella::gpu::cuda
