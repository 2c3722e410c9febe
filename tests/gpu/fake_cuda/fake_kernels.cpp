// Kernels of waits, posts and frames on streams made of threads.
#include "tests/gpu/fake_cuda/fake_cuda.hpp"

#include "gpu/cuda/stream/channel_port.hpp"
#include "gpu/cuda/stream/counter_wait.hpp"
#include "gpu/cuda/stream/launch_count.hpp"
#include "gpu/cuda/stream/ring_kernels.cuh"
#include "gpu/cuda/stream/words.cuh"
#include "gpu/ring/ring.hpp"
#include "net/rdma/mlx5/host_stores.hpp"

#include <atomic>
#include <chrono>
#include <cstring>
#include <thread>

namespace lamella::gpu::cuda {

namespace {

using lamella::test::fake_cuda::put;

uint64_t load(const uint64_t* word) {
  return std::atomic_ref{const_cast<uint64_t&>(*word)}.load(std::memory_order_acquire);
}

void fail(const channel_port& port, channel_status why) {
  if (port.failed != nullptr) *port.failed = static_cast<uint32_t>(why);
  uint32_t none = 0;
  std::atomic_ref{port.control->status}.compare_exchange_strong(none, static_cast<uint32_t>(why));
}

bool has_failed(const channel_port& port) { return port.failed != nullptr && *port.failed != 0; }

/// Who polls for long leaves the processors to those it waits for.
void rest(unsigned turns) {
  if (turns < 16)
    std::this_thread::yield();
  else
    std::this_thread::sleep_for(std::chrono::microseconds{20});
}

/// Until `there` says so, as the kernels wait.
template <class F> channel_status wait_until(F there, const channel_port& port) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::nanoseconds{port.deadline_ns};
  for (unsigned turns = 0; !there();) {
    auto why = channel_status::ok;
    if (has_failed(port) || std::atomic_ref{port.control->abort}.load() != 0)
      why = channel_status::aborted;
    else if (cudaGetLastError() != cudaSuccess)
      return channel_status::aborted; // nothing runs on a broken device
    else if (port.ended != nullptr && load(port.ended) != 0)
      why = there() ? channel_status::ok : channel_status::ended;
    else if (std::chrono::steady_clock::now() > until)
      why = channel_status::timeout;
    if (why != channel_status::ok) {
      fail(port, why);
      return why;
    }
    if (there()) return channel_status::ok;
    rest(turns++);
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
  count_launch();
  put(stream, [=] { std::atomic_ref{*word}.store(1u, std::memory_order_release); });
  return cudaGetLastError();
}

cudaError_t launch_fetch(const std::byte* host, size_t bytes, std::byte* device,
                         cudaStream_t stream) {
  count_launch();
  put(stream, [=] { std::memcpy(device, host, bytes); });
  return cudaGetLastError();
}

cudaError_t launch_send_frame(const frame_header& header, frame_header* slot, uint64_t* sent,
                              uint64_t value, const channel_port& port, cudaStream_t stream) {
  count_launch();
  put(stream, [=] {
    if (has_failed(port)) return;
    std::memcpy(slot, &header, sizeof header);
    store(sent, value);
  });
  return cudaGetLastError();
}

cudaError_t launch_receive_frame(const frame_header& expected, const std::byte* slot,
                                 const uint64_t* sent, uint64_t value, const channel_port& port,
                                 cudaStream_t stream) {
  count_launch();
  put(stream, [=] {
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
  return cudaGetLastError();
}

cudaError_t enqueue_wait(cudaStream_t stream, const uint64_t* word, channel_turn turn,
                         const channel_port& port) {
  count_launch();
  put(stream, [=] { wait_for(word, turn.fixed, port); });
  return cudaGetLastError();
}

cudaError_t launch_wait_either(const uint64_t* a, const uint64_t* b, uint64_t value,
                               const channel_port& port, cudaStream_t stream) {
  count_launch();
  put(stream, [=] { wait_until([=] { return load(a) >= value || load(b) >= value; }, port); });
  return cudaGetLastError();
}

cudaError_t enqueue_post(cudaStream_t stream, uint64_t* word, channel_turn turn,
                         const channel_port& port) {
  count_launch();
  put(stream, [=] {
    if (!has_failed(port)) store(word, turn.fixed);
  });
  return cudaGetLastError();
}

namespace {

using net::mlx5::doorbell, net::mlx5::post_status, net::mlx5::send_queue;

/// The stores of a host's thread, and the limits of a kernel's waits.
class stream_stores : public net::mlx5::host_stores {
public:
  explicit stream_stores(const channel_port& port)
      : host_stores{clock::now() + std::chrono::nanoseconds{port.deadline_ns}}, port_{port} {}
  post_status over() {
    if (has_failed(port_) || std::atomic_ref{port_.control->abort}.load() != 0)
      return post_status::aborted;
    if (port_.ended != nullptr && load(port_.ended) != 0) return post_status::ended;
    return host_stores::over();
  }

private:
  const channel_port& port_;
};

} // namespace

cudaError_t launch_ring_post(const frame_header& header, frame_header* slot, const ring_post& what,
                             const stream_posts& posts, const channel_port& port,
                             cudaStream_t stream) {
  count_launch();
  auto* queue = reinterpret_cast<send_queue*>(posts.queue);
  put(stream, [=, birth = posts.birth, ready = posts.ready,
               how = posts.rings ? doorbell::store : doorbell::proxy] {
    if (has_failed(port)) return;
    if (queue->ring == nullptr) {
      if (wait_for(ready, 1, port) != channel_status::ok) return;
      std::memcpy(queue, birth, sizeof(send_queue));
    }
    if (what.bytes > 0) std::memcpy(slot, &header, sizeof header);
    stream_stores stores{port};
    switch (net::mlx5::post_ring(*queue, what, how, stores)) {
    case post_status::ok:
      return;
    case post_status::timeout:
      return fail(port, channel_status::timeout);
    case post_status::ended:
      return fail(port, channel_status::ended);
    case post_status::aborted:
      return fail(port, channel_status::aborted);
    default:
      return fail(port, channel_status::queue_error);
    }
  });
  return cudaGetLastError();
}

} // namespace lamella::gpu::cuda
