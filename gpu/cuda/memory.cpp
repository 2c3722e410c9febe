#include "gpu/cuda/memory.hpp"

#include <algorithm>
#include <condition_variable>
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

  void give_back(void* p, give_back_call how) {
    {
      std::lock_guard lock{mutex_};
      queue_.push_back({p, how});
    }
    wake_.notify_one();
  }

private:
  struct entry {
    void* p;
    give_back_call how;
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
      next.how(next.p); // an error tells of a lost device: its memory is gone anyway
      lock.lock();
    }
  }

  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<entry> queue_;
};

std::shared_ptr<std::byte> owned(void* p, give_back_call how) {
  return {static_cast<std::byte*>(p), [how](std::byte* x) { undertaker::get().give_back(x, how); }};
}

/// Running out of memory is no error of the device: it is told as the standard does.
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
  check_room(cudaMalloc(&p, std::max<size_t>(bytes, 1)), "cudaMalloc");
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

} // namespace lamella::gpu::cuda
