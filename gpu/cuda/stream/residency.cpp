#include "gpu/cuda/stream/residency.hpp"

#include <algorithm>
#include <map>
#include <mutex>
#include <utility>

namespace lamella::gpu::cuda {

namespace {

/// What is known of one kernel on one device.
struct residency {
  std::map<std::pair<unsigned, size_t>, int> blocks; ///< by threads and shared memory
  size_t allowed =
      0; ///< shared memory: raised, never lowered, so that smaller shapes stay possible
};

cudaError_t ask(const void* kernel, int device, unsigned threads, size_t shared, residency& known) {
  int processors = 0, blocks = 0;
  if (auto error = cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device);
      error != cudaSuccess)
    return error;
  const auto allowed = std::max(shared, known.allowed);
  if (auto error = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                        static_cast<int>(allowed));
      error != cudaSuccess)
    return error;
  known.allowed = allowed;
  if (auto error = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel,
                                                                 static_cast<int>(threads), shared);
      error != cudaSuccess)
    return error;
  known.blocks[{threads, shared}] = blocks * processors;
  return cudaSuccess;
}

} // namespace

cudaError_t resident_blocks_of(const void* kernel, unsigned threads, size_t shared, int& blocks) {
  static std::mutex mutex;
  static std::map<std::pair<const void*, int>, residency> all;
  int device = 0;
  if (auto error = cudaGetDevice(&device); error != cudaSuccess) return error;
  std::lock_guard lock{mutex};
  auto& known = all[{kernel, device}];
  auto at = known.blocks.find({threads, shared});
  if (at == known.blocks.end()) {
    if (auto error = ask(kernel, device, threads, shared, known); error != cudaSuccess)
      return error;
    at = known.blocks.find({threads, shared});
  }
  blocks = at->second;
  return cudaSuccess;
}

} // namespace lamella::gpu::cuda
