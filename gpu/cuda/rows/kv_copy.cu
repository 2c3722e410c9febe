#include "gpu/cuda/rows/kv_copy.hpp"
#include "gpu/cuda/stream/launch.cuh"

#include <algorithm>

namespace lamella::gpu::cuda {

namespace {

constexpr unsigned threads = 128;

/// The slot of a row. Pieces have few runs: every thread walks them.
__device__ uint32_t slot_of(const kv_copy& args, uint32_t row) {
  for (uint32_t i = 0; i < args.run_count; ++i) {
    const auto run = args.runs[i];
    if (row < run.length) return run.first + row;
    row -= run.length;
  }
  return 0; // not reached: the runs cover the rows
}

enum class direction { gather, scatter, add };

template <direction way> __global__ void copy_rows(kv_copy args) {
  begin_kernel();
  const auto words = 2 * args.half_words;
  uint64_t sum = 0;
  for (auto row = blockIdx.x; row < args.rows; row += gridDim.x) {
    auto* place = args.cache + slot_of(args, row) * args.row_bytes;
    auto* packed = reinterpret_cast<uint32_t*>(args.packed) + size_t{row} * words;
    for (auto i = threadIdx.x; i < words; i += blockDim.x) {
      const bool is_k = i < args.half_words;
      auto* word = reinterpret_cast<uint32_t*>(place + (is_k ? args.k_offset : args.v_offset))
                   + (is_k ? i : i - args.half_words);
      const auto moved = way == direction::gather ? *word : packed[i];
      if constexpr (way == direction::gather)
        packed[i] = moved;
      else if constexpr (way == direction::scatter)
        *word = moved;
      else
        *word ^= moved;
      const auto index = args.first_word + size_t{row} * words + i;
      sum += uint64_t{moved} * (index * digest_factor | 1);
    }
  }
  for (int apart = 16; apart > 0; apart /= 2)
    sum += __shfl_xor_sync(0xffffffffu, static_cast<unsigned long long>(sum), apart);
  __shared__ uint64_t sums[threads / 32];
  if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x != 0) return;
  for (unsigned i = 1; i < threads / 32; ++i) sum += sums[i];
  args.digests[blockIdx.x] += sum;
}

unsigned blocks_of(const kv_copy& args) { return std::min(args.rows, digest_parts); }

} // namespace

cudaError_t launch_gather_kv(const kv_copy& args, cudaStream_t stream) {
  launch_kernel(copy_rows<direction::gather>, blocks_of(args), threads, 0, stream, args);
  return cudaGetLastError();
}

cudaError_t launch_scatter_kv(const kv_copy& args, cudaStream_t stream) {
  if (args.add)
    launch_kernel(copy_rows<direction::add>, blocks_of(args), threads, 0, stream, args);
  else
    launch_kernel(copy_rows<direction::scatter>, blocks_of(args), threads, 0, stream, args);
  return cudaGetLastError();
}

} // namespace lamella::gpu::cuda
