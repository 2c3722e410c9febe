#include "tests/gpu/fake_cuda/fake_cuda.hpp"

#include "gpu/cuda/channel_port.hpp"
#include "gpu/cuda/counter_wait.hpp"
#include "gpu/cuda/launch_count.hpp"
#include "gpu/cuda/ring_kernels.cuh"
#include "gpu/cuda/words.cuh"
#include "gpu/ring.hpp"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <thread>
#include <vector>

namespace {

using clock_type = std::chrono::steady_clock;

std::atomic<bool> broken{false};
std::atomic<uint64_t> waited{0}, pinned_pieces{0};
std::atomic<int64_t> allocated{0};
std::atomic<uint64_t> graphs{0}, graph_launches{0};

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
    if (captured) {
      captured->push_back(std::move(kernel));
      return;
    }
    {
      std::lock_guard lock{mutex};
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
  std::optional<std::vector<std::function<void()>>> captured; ///< of the thread that captures
  bool stopping = false;
  std::thread thread;
};

struct CUgraph_st {
  std::vector<std::function<void()>> kernels;
};
struct CUgraphExec_st : CUgraph_st {};

struct CUevent_st {
  std::atomic<int64_t> ns{0};
};

namespace {

// Never destroyed, like all tables here: memory is given back by a thread that lives until the
// process ends (gpu/cuda/memory.cpp), while static objects go.
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
  ++allocated;
  std::lock_guard lock{owners_mutex};
  owners[*p] = owner;
  return result();
}

cudaError_t give_back(void* p) {
  {
    std::lock_guard lock{owners_mutex};
    const auto owner = owners.extract(p);
    if (owner && owner.mapped() != of_host && owner.mapped() != current_device) ++elsewhere;
  }
  std::free(p);
  if (p != nullptr) --allocated;
  return cudaSuccess;
}

} // namespace

extern "C" {
cudaError_t cudaSetDevice(int device) { return current_device = device, result(); }
cudaError_t cudaGetDevice(int* device) { return *device = current_device, result(); }
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
cudaError_t cudaMemsetAsync(void* p, int value, size_t bytes, cudaStream_t s) {
  s->put([=] { std::memset(p, value, bytes); });
  return result();
}
cudaError_t cudaStreamBeginCapture(cudaStream_t s, cudaStreamCaptureMode) {
  s->captured.emplace();
  return result();
}
cudaError_t cudaStreamEndCapture(cudaStream_t s, cudaGraph_t* graph) {
  *graph = new CUgraph_st{std::move(*s->captured)};
  s->captured.reset();
  return result();
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  delete graph;
  return cudaSuccess;
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* exec, cudaGraph_t graph, unsigned long long) {
  *exec = new CUgraphExec_st{*graph};
  ++graphs;
  return result();
}
cudaError_t cudaGraphExecUpdate(cudaGraphExec_t exec, cudaGraph_t graph,
                                cudaGraphExecUpdateResultInfo*) {
  if (exec->kernels.size() != graph->kernels.size()) return cudaErrorGraphExecUpdateFailure;
  exec->kernels = graph->kernels;
  return result();
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) {
  delete exec;
  return cudaSuccess;
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t s) {
  ++graph_launches;
  for (const auto& kernel : exec->kernels) s->put(kernel);
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
cudaError_t cudaEventRecord(cudaEvent_t e, cudaStream_t s) {
  s->put([e] { e->ns = clock_type::now().time_since_epoch().count(); });
  return result();
}
cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t a, cudaEvent_t b) {
  *ms = static_cast<float>(b->ns - a->ns) / 1e6f;
  return result();
}
} // extern "C"

namespace lamella::gpu::cuda {

namespace {

uint64_t load(const uint64_t* word) {
  return std::atomic_ref{const_cast<uint64_t&>(*word)}.load(std::memory_order_acquire);
}

void fail(const channel_port& port, channel_status why) {
  if (port.failed != nullptr) *port.failed = static_cast<uint32_t>(why);
  uint32_t none = 0;
  std::atomic_ref{port.control->status}.compare_exchange_strong(none, static_cast<uint32_t>(why));
}

bool has_failed(const channel_port& port) { return port.failed != nullptr && *port.failed != 0; }

/// Until `there` says so, as the kernels wait.
template <class F> channel_status wait_until(F there, const channel_port& port) {
  const auto until = clock_type::now() + std::chrono::nanoseconds{port.deadline_ns};
  while (!there()) {
    auto why = channel_status::ok;
    if (has_failed(port) || std::atomic_ref{port.control->abort}.load() != 0)
      why = channel_status::aborted;
    else if (broken)
      return channel_status::aborted; // nothing runs on a broken device
    else if (port.ended != nullptr && load(port.ended) != 0)
      why = there() ? channel_status::ok : channel_status::ended;
    else if (clock_type::now() > until)
      why = channel_status::timeout;
    if (why != channel_status::ok) {
      fail(port, why);
      return why;
    }
    if (there()) return channel_status::ok;
    std::this_thread::yield();
  }
  return channel_status::ok;
}

channel_status wait_for(const uint64_t* word, uint64_t wanted, const channel_port& port) {
  return wait_until([=] { return load(word) >= wanted; }, port);
}

void store(uint64_t* word, uint64_t value) {
  std::atomic_ref{*word}.store(value, std::memory_order_release);
}

} // namespace

cudaError_t launch_raise(uint32_t* word, cudaStream_t stream) {
  count_launch(uint64_t{1});
  stream->put([=] { std::atomic_ref{*word}.store(1u, std::memory_order_release); });
  return result();
}

cudaError_t launch_fetch(const std::byte* host, size_t bytes, std::byte* device,
                         cudaStream_t stream) {
  count_launch(uint64_t{2});
  stream->put([=] { std::memcpy(device, host, bytes); });
  return result();
}

cudaError_t launch_send_frame(const frame_header& header, frame_header* slot, uint64_t* sent,
                              uint64_t value, const channel_port& port, cudaStream_t stream) {
  count_launch(uint64_t{3});
  stream->put([=] {
    if (has_failed(port)) return;
    std::memcpy(slot, &header, sizeof header);
    store(sent, value);
  });
  return result();
}

cudaError_t launch_receive_frame(const frame_header& expected, const std::byte* slot,
                                 const uint64_t* sent, uint64_t value, const channel_port& port,
                                 cudaStream_t stream) {
  count_launch(uint64_t{4});
  stream->put([=] {
    if (wait_for(sent, value, port) != channel_status::ok) return;
    frame_header x;
    std::memcpy(&x, slot, sizeof x);
    // As the kernel does it: all but who sent it and the checksums.
    x.seat = expected.seat;
    x.incarnation = expected.incarnation;
    x.flags = expected.flags;
    x.payload_crc = expected.payload_crc;
    x.header_crc = expected.header_crc;
    if (std::memcmp(&x, &expected, sizeof x) != 0) fail(port, channel_status::wrong_frame);
  });
  return result();
}

cudaError_t enqueue_wait(cudaStream_t stream, const uint64_t* word, channel_turn turn,
                         const channel_port& port) {
  count_launch(uint64_t{5});
  stream->put([=] { wait_for(word, turn.fixed, port); });
  return result();
}

cudaError_t launch_wait_either(const uint64_t* a, const uint64_t* b, uint64_t value,
                               const channel_port& port, cudaStream_t stream) {
  count_launch(uint64_t{5});
  stream->put([=] { wait_until([=] { return load(a) >= value || load(b) >= value; }, port); });
  return result();
}

cudaError_t enqueue_post(cudaStream_t stream, uint64_t* word, channel_turn turn,
                         const channel_port& port) {
  count_launch(uint64_t{6});
  stream->put([=] {
    if (!has_failed(port)) store(word, turn.fixed);
  });
  return result();
}

} // namespace lamella::gpu::cuda

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
  waited = pinned_pieces = graphs = graph_launches = elsewhere = 0;
}
int64_t allocations() { return allocated; }
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
uint64_t graphs_made() { return graphs; }
uint64_t graphs_launched() { return graph_launches; }

} // namespace lamella::test::fake_cuda
