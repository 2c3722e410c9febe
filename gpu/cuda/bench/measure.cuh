/// What every measurement on a device needs: checked calls, memory that is given back, percentiles.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <utility>
#include <vector>

namespace lamella::gpu::cuda::bench {

/// A failed call ends the program: a benchmark has nothing to repair.
inline void check(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(error));
  std::exit(1);
}

/// `count` values in device memory, zeroed; or, where `Mapped`, in pinned host memory that device
/// and host see at the same address.
template <class T, bool Mapped> class buffer {
public:
  explicit buffer(size_t count) : count_{count} {
    if constexpr (Mapped) {
      check(cudaHostAlloc(reinterpret_cast<void**>(&data_), count * sizeof(T),
                          cudaHostAllocMapped | cudaHostAllocPortable),
            "cudaHostAlloc");
      for (size_t i = 0; i < count; ++i) new (data_ + i) T{};
    } else {
      check(cudaMalloc(reinterpret_cast<void**>(&data_), count * sizeof(T)), "cudaMalloc");
      check(cudaMemset(data_, 0, count * sizeof(T)), "cudaMemset");
    }
  }
  ~buffer() {
    if constexpr (Mapped)
      cudaFreeHost(data_);
    else
      cudaFree(data_);
  }
  buffer(const buffer&) = delete;
  buffer& operator=(const buffer&) = delete;

  T* get() const { return data_; }
  T& operator*() const { return *data_; }
  T* operator->() const { return data_; }
  size_t size() const { return count_; }

  /// Copies the values to the host. Waits for the device.
  std::vector<T> read() const {
    std::vector<T> values(count_);
    check(cudaDeviceSynchronize(), "synchronise");
    check(cudaMemcpy(values.data(), data_, count_ * sizeof(T), cudaMemcpyDefault), "read");
    return values;
  }
  void write(const T& value, size_t at = 0) {
    check(cudaMemcpy(data_ + at, &value, sizeof value, cudaMemcpyDefault), "write");
  }

private:
  T* data_ = nullptr;
  size_t count_;
};
template <class T> using device_buffer = buffer<T, false>;
template <class T> using mapped_buffer = buffer<T, true>;

/// A stream that does not wait for the default stream.
class stream {
public:
  stream() { check(cudaStreamCreateWithFlags(&s_, cudaStreamNonBlocking), "stream"); }
  ~stream() { cudaStreamDestroy(s_); }
  stream(const stream&) = delete;
  stream& operator=(const stream&) = delete;
  operator cudaStream_t() const { return s_; }
  void wait() const { check(cudaStreamSynchronize(s_), "synchronise a stream"); }

private:
  cudaStream_t s_;
};

/// What `enqueue(stream)` enqueues, as a graph that can be launched again and again.
class graph {
public:
  template <class F> graph(cudaStream_t s, F enqueue) {
    check(cudaStreamBeginCapture(s, cudaStreamCaptureModeThreadLocal), "begin capture");
    enqueue(s);
    cudaGraph_t captured;
    check(cudaStreamEndCapture(s, &captured), "end capture");
    check(cudaGraphInstantiate(&exec_, captured, 0), "instantiate");
    check(cudaGraphDestroy(captured), "destroy graph");
    check(cudaGraphUpload(exec_, s), "upload graph");
  }
  ~graph() { cudaGraphExecDestroy(exec_); }
  graph(const graph&) = delete;
  graph& operator=(const graph&) = delete;
  void launch(cudaStream_t s) const { check(cudaGraphLaunch(exec_, s), "launch graph"); }

private:
  cudaGraphExec_t exec_ = nullptr;
};

/// Percentiles of samples in nanoseconds, told in microseconds.
struct summary {
  double p50_us = 0, p99_us = 0;
  size_t samples = 0;
};

inline summary summarise(std::vector<uint64_t> ns) {
  if (ns.empty()) return {};
  std::sort(ns.begin(), ns.end());
  const auto at = [&](double q) { return 1e-3 * ns[static_cast<size_t>(q * (ns.size() - 1))]; };
  return {at(0.5), at(0.99), ns.size()};
}

} // namespace lamella::gpu::cuda::bench
