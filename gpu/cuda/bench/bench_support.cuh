/// Memory, limits and clocks of the CUDA attention benchmark.
#pragma once

#include "gpu/cuda/attention/attention.hpp"

#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace lamella::gpu::cuda::bench {

[[noreturn]] inline void fail(const char* why) {
  std::fprintf(stderr, "attention_bench: %s\n", why);
  std::exit(1);
}

inline void check(cudaError_t error) {
  if (error != cudaSuccess) fail(cudaGetErrorString(error));
}

/// The next of a row of numbers in [0, 1) that is the same everywhere.
inline double uniform(uint64_t& state) {
  uint64_t z = state += 0x9E3779B97F4A7C15u;
  z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
  z = (z ^ z >> 27) * 0x94D049BB133111EBu;
  return static_cast<double>((z ^ z >> 31) >> 11) * 0x1p-53;
}

/// Halves in [-1.7, 1.7), deviation 1, from a hash of their place.
__global__ void fill_kernel(uint32_t* words, size_t count) {
  for (size_t i = blockIdx.x * size_t{blockDim.x} + threadIdx.x; i < count;
       i += size_t{gridDim.x} * blockDim.x) {
    uint64_t z = (i + 1) * 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z ^= z >> 27;
    const auto pair = __floats2half2_rn((float(z & 0xffff) / 32768 - 1) * 1.7f,
                                        (float(z >> 16 & 0xffff) / 32768 - 1) * 1.7f);
    memcpy(&words[i], &pair, 4);
  }
}

__global__ void read_kernel(const uint4* from, size_t count, uint32_t* sum) {
  uint32_t total = 0;
  const size_t step = size_t{gridDim.x} * blockDim.x;
  size_t i = blockIdx.x * size_t{blockDim.x} + threadIdx.x;
  for (; i + 7 * step < count; i += 8 * step) {
    uint4 x[8];
#pragma unroll
    for (int k = 0; k < 8; ++k) x[k] = __ldcs(from + i + k * step);
#pragma unroll
    for (int k = 0; k < 8; ++k) total += x[k].x ^ x[k].y ^ x[k].z ^ x[k].w;
  }
  for (; i < count; i += step) total += from[i].x;
  if (total == 0x12345678u) *sum = total; // never skipped by the compiler
}

/// All memory of the benchmark, filled once with random halves.
struct buffers {
  explicit buffers(size_t pool_size) : pool_bytes{pool_size} {
    check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    for (auto [at, bytes] : {std::pair{&pool, pool_bytes},
                             {&wire, wire_bytes},
                             {&plan, plan_bytes},
                             {&records, record_bytes}}) {
      check(cudaMalloc(at, bytes));
      fill_kernel<<<4096, 256, 0, stream>>>(reinterpret_cast<uint32_t*>(*at), bytes / 4);
    }
    check(cudaStreamSynchronize(stream));
  }
  void upload_plan(const attention_plan& x) {
    if (x.capacity.device_bytes() > plan_bytes) fail("room for plans is too small");
    check(cudaMemcpyAsync(plan, x.bytes.data(), x.bytes.size(), cudaMemcpyHostToDevice, stream));
    check(cudaStreamSynchronize(stream));
  }

  size_t pool_bytes, wire_bytes = size_t{512} << 20, plan_bytes = size_t{128} << 20,
                     record_bytes = size_t{2048} << 20;
  std::byte *pool = nullptr, *wire = nullptr, *plan = nullptr, *records = nullptr;
  cudaStream_t stream = nullptr;
};

struct times {
  double best, median; ///< seconds
};

/// Captures `count` launches, replays them `replays` times after a warm-up and gives the time of
/// one.
template <class F> times time_graph(cudaStream_t stream, int count, int replays, F launch) {
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  for (int i = 0; i < count; ++i) launch(i);
  check(cudaStreamEndCapture(stream, &graph));
  check(cudaGraphInstantiate(&exec, graph, 0));
  cudaEvent_t from, to;
  check(cudaEventCreate(&from));
  check(cudaEventCreate(&to));
  std::vector<double> seconds;
  for (int i = 0; i <= replays; ++i) {
    check(cudaEventRecord(from, stream));
    check(cudaGraphLaunch(exec, stream));
    check(cudaEventRecord(to, stream));
    check(cudaEventSynchronize(to));
    float ms = 0;
    check(cudaEventElapsedTime(&ms, from, to));
    if (i > 0) seconds.push_back(ms * 1e-3 / count);
  }
  check(cudaEventDestroy(from));
  check(cudaEventDestroy(to));
  check(cudaGraphExecDestroy(exec));
  check(cudaGraphDestroy(graph));
  std::sort(seconds.begin(), seconds.end());
  return {seconds.front(), seconds[seconds.size() / 2]};
}

/// Times a launch by events around it, replays times after a warm-up; the best, in seconds.
template <class F> double time_best(cudaStream_t stream, int replays, F launch) {
  cudaEvent_t from, to;
  check(cudaEventCreate(&from));
  check(cudaEventCreate(&to));
  double best = 1e9;
  for (int i = 0; i <= replays; ++i) {
    check(cudaEventRecord(from, stream));
    launch();
    check(cudaEventRecord(to, stream));
    check(cudaEventSynchronize(to));
    float ms = 0;
    check(cudaEventElapsedTime(&ms, from, to));
    if (i > 0) best = std::min(best, ms * 1e-3);
  }
  check(cudaEventDestroy(from));
  check(cudaEventDestroy(to));
  return best;
}

struct limits {
  double copy, read; ///< GB/s; copy counts both ways
};

/// Best of several: a copy of half the pool to the other half by the driver, and a sum over the
/// pool.
inline limits measure_limits(buffers& memory) {
  const auto half = memory.pool_bytes / 2 / 16 * 16;
  const auto copy = time_best(memory.stream, 10, [&] {
    check(cudaMemcpyAsync(memory.pool + half, memory.pool, half, cudaMemcpyDeviceToDevice,
                          memory.stream));
  });
  const auto read = time_best(memory.stream, 10, [&] {
    read_kernel<<<132 * 8, 512, 0, memory.stream>>>(reinterpret_cast<const uint4*>(memory.pool),
                                                    half * 2 / 16,
                                                    reinterpret_cast<uint32_t*>(memory.plan));
    check(cudaPeekAtLastError());
  });
  return {2e-9 * double(half) / copy, 2e-9 * double(half) / read};
}

} // namespace lamella::gpu::cuda::bench
