/// Memory, random numbers and times of the product benchmark.
#pragma once

#include "gpu/cuda/gemm/gemm_check.hpp"
#include "gpu/cuda/rows/rows.hpp"

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <vector>

namespace lamella::gpu::cuda::bench {

inline void check(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(error));
  std::exit(1);
}

struct device_free {
  void operator()(void* p) const { cudaFree(p); }
};
using memory = std::unique_ptr<void, device_free>;

inline memory allocate(size_t bytes) {
  void* p = nullptr;
  check(cudaMalloc(&p, bytes), "memory");
  check(cudaMemset(p, 0, bytes), "memory");
  return memory{p};
}

inline memory random_matrix(dense_type type, size_t count, uint64_t seed) {
  auto m = allocate(count * 2);
  check(launch_fill_random(type, m.get(), count, seed, nullptr), "random numbers");
  return m;
}

/// fp32 numbers of about unit variance: a random 16-bit matrix, widened on the host would be slow;
/// embedding rows 0 … of it does the same on the device.
inline memory random_floats(uint32_t rows, uint32_t width) {
  auto halves = random_matrix(dense_type::f16, size_t{rows} * width, rows + width);
  std::vector<uint32_t> order(rows);
  for (uint32_t i = 0; i < rows; ++i) order[i] = i;
  auto ids = allocate(rows * 4);
  auto out = allocate(size_t{rows} * width * 4);
  check(cudaMemcpy(ids.get(), order.data(), rows * 4, cudaMemcpyHostToDevice), "ids");
  auto* tokens = static_cast<uint32_t*>(ids.get());
  check(launch_embed({{dense_type::f16, rows, width, halves.get()},
                      tokens,
                      tokens,
                      tokens,
                      rows,
                      static_cast<float*>(out.get())},
                     nullptr),
        "widen");
  check(cudaDeviceSynchronize(), "widen");
  return out;
}

/// Made by main().
inline cudaStream_t stream;
inline cudaEvent_t from, to;

/// Median microseconds of one of `count` calls in a graph; `work(i)` enqueues the i-th. 0: fails.
inline double time(int count, const std::function<cudaError_t(int)>& work) {
  if (work(0) != cudaSuccess) {
    cudaGetLastError();
    return 0;
  }
  cudaGraph_t graph{};
  cudaGraphExec_t replay{};
  bool good = true;
  check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "capture");
  for (int i = 0; i < count && good; ++i) good = work(i) == cudaSuccess;
  check(cudaStreamEndCapture(stream, &graph), "capture");
  check(cudaGraphInstantiate(&replay, graph, 0), "graph");
  std::vector<double> each;
  for (int repetition = 0; repetition < 7 && good; ++repetition) {
    cudaEventRecord(from, stream);
    check(cudaGraphLaunch(replay, stream), "graph");
    cudaEventRecord(to, stream);
    check(cudaEventSynchronize(to), "graph");
    float milliseconds = 0;
    cudaEventElapsedTime(&milliseconds, from, to);
    if (repetition > 1) each.push_back(milliseconds * 1000.0 / count);
  }
  cudaGraphExecDestroy(replay);
  cudaGraphDestroy(graph);
  if (!good) return 0;
  std::sort(each.begin(), each.end());
  return each[each.size() / 2];
}

} // namespace lamella::gpu::cuda::bench
