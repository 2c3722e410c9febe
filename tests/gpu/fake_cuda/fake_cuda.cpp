#include "tests/gpu/fake_cuda/fake_cuda.hpp"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

namespace {

using clock_type = std::chrono::steady_clock;

std::atomic<bool> broken{false};
std::atomic<uint64_t> waited{0}, pinned_pieces{0};
std::atomic<int64_t> allocated{0};
std::atomic<uint32_t> refused_memory{0};

/// Launches that a stream takes before the next one waits for room.
constexpr size_t launches_max = 1024;

cudaError_t result() { return broken ? cudaErrorIllegalAddress : cudaSuccess; }

} // namespace

/// One stream: closures in order, on a thread of its own.
struct CUstream_st {
  CUstream_st() : thread{[this] { run(); }} {}
  ~CUstream_st() {
    {
      std::lock_guard lock{mutex};
      stopping = true;
    }
    changed.notify_all();
    thread.join();
  }

  void put(std::function<void()> kernel) {
    {
      std::unique_lock lock{mutex};
      if (kernels.size() >= launches_max) {
        ++waited;
        changed.wait(lock, [this] { return kernels.size() < launches_max; });
      }
      kernels.push_back(std::move(kernel));
    }
    changed.notify_all();
  }

  bool idle() {
    std::lock_guard lock{mutex};
    return kernels.empty();
  }

  void run() {
    std::unique_lock lock{mutex};
    while (true) {
      changed.wait(lock, [this] { return stopping || !kernels.empty(); });
      if (kernels.empty()) return;
      auto& kernel = kernels.front();
      lock.unlock();
      if (!broken) kernel();
      lock.lock();
      kernels.pop_front();
      changed.notify_all();
    }
  }

  std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::function<void()>> kernels;
  bool stopping = false;
  std::thread thread;
};

struct CUevent_st {
  std::atomic<int64_t> ns{0};
  std::atomic<uint64_t> recorded{0}, passed{0};
};

namespace {

// Never destroyed, like all tables here: memory is given back by a thread that lives until the
// process ends (gpu/cuda/driver/memory.cpp), while static objects go.
std::mutex& streams_mutex = *new std::mutex;
std::set<cudaStream_t>& streams = *new std::set<cudaStream_t>;

bool device_idle() {
  std::lock_guard lock{streams_mutex};
  for (auto* s : streams)
    if (!s->idle()) return false;
  return true;
}

/// What pinning, allocating and plain copies do on a real device.
void wait_for_device() {
  if (device_idle()) return;
  ++waited;
  while (!device_idle()) std::this_thread::yield();
}

thread_local int current_device = 0;
std::mutex& owners_mutex = *new std::mutex;
std::map<void*, int>& owners = *new std::map<void*, int>; ///< devices by memory
using device_pairs = std::set<std::pair<int, int>>;
device_pairs &out_of_reach = *new device_pairs, &reaches = *new device_pairs;
std::atomic<uint64_t> elsewhere{0};

constexpr int of_host = -1;

cudaError_t allocate(void** p, size_t bytes, int owner) {
  *p = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  if (owner != of_host) ++allocated;
  std::lock_guard lock{owners_mutex};
  owners[*p] = owner;
  return result();
}

cudaError_t give_back(void* p) {
  {
    std::lock_guard lock{owners_mutex};
    const auto owner = owners.extract(p);
    if (owner && owner.mapped() != of_host) {
      --allocated;
      if (owner.mapped() != current_device) ++elsewhere;
    }
  }
  std::free(p);
  return cudaSuccess;
}

} // namespace

extern "C" {
cudaError_t cudaSetDevice(int device) { return current_device = device, result(); }
cudaError_t cudaGetDevice(int* device) { return *device = current_device, result(); }
/// Asked for the shared memory of a block alone.
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr, int) {
  return *value = 232'448, result();
}
cudaError_t cudaGetLastError() { return result(); }
const char* cudaGetErrorName(cudaError_t) { return "cudaErrorFake"; }
const char* cudaGetErrorString(cudaError_t) { return "a failure of the test"; }
cudaError_t cudaMalloc(void** p, size_t bytes) {
  wait_for_device();
  return allocate(p, bytes, current_device);
}
cudaError_t cudaFree(void* p) {
  wait_for_device();
  return give_back(p);
}
cudaError_t cudaHostAlloc(void** p, size_t bytes, unsigned) {
  ++pinned_pieces;
  wait_for_device();
  return allocate(p, bytes, of_host);
}
cudaError_t cudaFreeHost(void* p) {
  wait_for_device();
  return give_back(p);
}
cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind) {
  wait_for_device();
  std::memcpy(to, from, bytes);
  return result();
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind,
                            cudaStream_t s) {
  if (s == nullptr)
    std::memcpy(to, from, bytes);
  else
    s->put([=] { std::memcpy(to, from, bytes); });
  return result();
}
cudaError_t cudaMallocAsync(void** p, size_t bytes, cudaStream_t) {
  if (refused_memory > 0) return --refused_memory, cudaErrorMemoryAllocation;
  return allocate(p, bytes, current_device);
}
cudaError_t cudaFreeAsync(void* p, cudaStream_t) { return give_back(p); }
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* s, unsigned) {
  *s = new CUstream_st;
  std::lock_guard lock{streams_mutex};
  streams.insert(*s);
  return result();
}
cudaError_t cudaStreamDestroy(cudaStream_t s) {
  {
    std::lock_guard lock{streams_mutex};
    streams.erase(s);
  }
  delete s;
  return cudaSuccess;
}
cudaError_t cudaStreamQuery(cudaStream_t s) {
  return broken ? cudaErrorIllegalAddress : s->idle() ? cudaSuccess : cudaErrorNotReady;
}
cudaError_t cudaMemset(void* p, int value, size_t bytes) {
  std::memset(p, value, bytes);
  return result();
}
cudaError_t cudaStreamSynchronize(cudaStream_t s) {
  while (s != nullptr && !s->idle()) std::this_thread::yield();
  return result();
}
cudaError_t cudaDeviceCanAccessPeer(int* possible, int from, int to) {
  std::lock_guard lock{owners_mutex};
  *possible = !out_of_reach.contains({from, to});
  return result();
}
cudaError_t cudaDeviceEnablePeerAccess(int to, unsigned) {
  std::lock_guard lock{owners_mutex};
  return reaches.insert({current_device, to}).second ? result() : cudaErrorPeerAccessAlreadyEnabled;
}
cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t* pool, int) {
  return *pool = nullptr, result();
}
cudaError_t cudaMemPoolSetAccess(cudaMemPool_t, const cudaMemAccessDesc*, size_t) {
  return result();
}
cudaError_t cudaMemsetAsync(void* p, int value, size_t bytes, cudaStream_t s) {
  s->put([=] { std::memset(p, value, bytes); });
  return result();
}
cudaError_t cudaEventCreate(cudaEvent_t* e) {
  *e = new CUevent_st;
  return result();
}
cudaError_t cudaEventDestroy(cudaEvent_t e) {
  delete e;
  return cudaSuccess;
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* e, unsigned) { return cudaEventCreate(e); }
cudaError_t cudaEventRecord(cudaEvent_t e, cudaStream_t s) {
  ++e->recorded;
  s->put([e] {
    e->ns = clock_type::now().time_since_epoch().count();
    ++e->passed;
  });
  return result();
}
cudaError_t cudaEventQuery(cudaEvent_t e) {
  return broken ? result() : e->passed == e->recorded ? cudaSuccess : cudaErrorNotReady;
}
cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t a, cudaEvent_t b) {
  *ms = static_cast<float>(b->ns - a->ns) / 1e6f;
  return result();
}
} // extern "C"

namespace lamella::test::fake_cuda {

void put(cudaStream_t stream, std::function<void()> kernel) { stream->put(std::move(kernel)); }
uint64_t calls_that_waited() { return waited; }
uint64_t pinned() { return pinned_pieces; }
void break_device() { broken = true; }
void reset() {
  // What a broken device was given is never run, not even by one that works again.
  while (broken && !device_idle()) std::this_thread::yield();
  broken = false;
  {
    std::lock_guard lock{owners_mutex};
    out_of_reach.clear();
    reaches.clear();
  }
  refused_memory = 0;
  waited = pinned_pieces = elsewhere = 0;
}
int64_t allocations() { return allocated; }
void refuse_memory(uint32_t times) { refused_memory = times; }
uint64_t given_back_elsewhere() { return elsewhere; }
int device_of(const void* p) {
  std::lock_guard lock{owners_mutex};
  return owners.at(const_cast<void*>(p));
}
bool reach_is_open(int from, int to) {
  std::lock_guard lock{owners_mutex};
  return reaches.contains({from, to});
}
void put_out_of_reach(int from, int to) {
  std::lock_guard lock{owners_mutex};
  out_of_reach.insert({from, to});
}

} // namespace lamella::test::fake_cuda
