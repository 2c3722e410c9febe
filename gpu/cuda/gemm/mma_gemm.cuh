/// out[m][n] = sum over k of x[m][k] * w[n][k] on mma.sync, for any M, N and K a multiple of 8.
///
/// Weights are the 16-row operand and activations the 8-column one, so that small M wastes little.
/// Both stream through shared memory by cp.async in STAGES tiles of BK inputs, 16 bytes at a time,
/// with chunks swizzled so that ldmatrix meets no bank twice.
///
/// **One arithmetic for all shapes of tile**: an output is a chain of m16n8k16 matmuls over
/// ascending k, from zero, within [k_begin, k_end) of its split. Neither M, nor the tile, nor the
/// place of a row in it enters. Columns beyond K and rows beyond M are zeros.
#pragma once

#include "gpu/cuda/gemm/mma_variants.hpp"
#include "gpu/cuda/stream/launch.cuh"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>
#include <type_traits>

namespace lamella::gpu::cuda {

/// BM rows of x by BN rows of w per block; a warp does WM by WN of them.
template <int BM_, int BN_, int BK_, int WM_, int WN_, int STAGES_> struct mma_tile {
  static constexpr int BM = BM_, BN = BN_, BK = BK_, WM = WM_, WN = WN_, STAGES = STAGES_;
  static constexpr int threads = BM / WM * (BN / WN) * 32;
  static constexpr int row_bytes = BK * 2;
  static constexpr int chunks = BK / 8; ///< of 16 bytes per row
  static constexpr int stage_bytes = (BM + BN) * row_bytes;
  static constexpr int shared_bytes = STAGES * stage_bytes;
  static_assert(BK % 64 == 0 && WM % 16 == 0 && WN % 16 == 0);
  static_assert(BM % WM == 0 && BN % WN == 0);
  static_assert((BM * chunks) % threads == 0 && (BN * chunks) % threads == 0);
};

// Instructions; an emulated device has its own.
#ifndef LAMELLA_EMULATED_DEVICE
namespace mma {

__device__ inline uint32_t shared_address(const void* p) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(p));
}

/// Copies 16 bytes, or writes 16 zeros when not `valid`; `from` must be readable either way.
__device__ inline void copy_16(uint32_t to, const void* from, bool valid) {
  asm volatile("cp.async.cg.shared.global.L2::256B [%0], [%1], 16, %2;\n" ::"r"(to), "l"(from),
               "r"(valid ? 16 : 0)
               : "memory");
}

__device__ inline void prefetch_line(const void* from) {
  asm volatile("prefetch.global.L2 [%0];\n" ::"l"(from));
}

/// Past the L1, which may hold what others have overwritten.
__device__ inline float load_from_l2(const float* from) { return __ldcg(from); }

__device__ inline void commit() { asm volatile("cp.async.commit_group;\n" ::: "memory"); }

template <int N> __device__ inline void wait_all_but() {
  asm volatile("cp.async.wait_group %0;\n" ::"n"(N) : "memory");
}

__device__ inline void load_matrices(uint32_t (&r)[4], uint32_t from) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];\n"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(from)
               : "memory");
}

template <class T>
__device__ inline void multiply_add(float (&c)[4], const uint32_t (&a)[4], uint32_t b0,
                                    uint32_t b1) {
  if constexpr (std::is_same_v<T, __half>)
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, "
                 "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};\n"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  else
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, "
                 "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};\n"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

} // namespace mma
#endif

namespace mma {

/// Byte offset of 16-byte chunk `chunk` of row `row` in a tile.
template <class Tile> __device__ inline uint32_t swizzled(int row, int chunk) {
  return static_cast<uint32_t>(row * Tile::row_bytes + ((chunk ^ (row & 7)) << 4));
}

/// Starts the copies of `ROWS` rows from `first_row` of a [limit, inputs] matrix, inputs
/// [k, k + BK) of which those below `k_end` exist.
template <class Tile, int ROWS, class T>
__device__ inline void load_tile(uint32_t to, const T* from, uint32_t first_row, uint32_t limit,
                                 uint32_t inputs, uint32_t k, uint32_t k_end) {
#pragma unroll
  for (int i = 0; i < ROWS * Tile::chunks / Tile::threads; ++i) {
    int at = static_cast<int>(threadIdx.x) + i * Tile::threads;
    int row = at / Tile::chunks, chunk = at % Tile::chunks;
    uint32_t r = first_row + static_cast<uint32_t>(row);
    uint32_t column = k + static_cast<uint32_t>(chunk) * 8;
    bool valid = r < limit && column < k_end;
    const T* source = from + (valid ? size_t{r} * inputs + column : 0);
    copy_16(to + swizzled<Tile>(row, chunk), source, valid);
  }
}

/// The share of the inputs that a block's split takes, in tiles. The last split may be empty; its
/// part is zeros.
struct split_inputs {
  uint32_t begin, end;
  int tiles;
};
template <class Tile> __device__ inline split_inputs inputs_of_split(const mma_gemm_args& args) {
  const uint32_t begin = blockIdx.z * args.inputs_per_split;
  const uint32_t end = min(args.inputs, begin + args.inputs_per_split);
  return {begin, end, begin < end ? static_cast<int>((end - begin + Tile::BK - 1) / Tile::BK) : 0};
}

/// Starts on its way to the L2 what load_tile of these `ROWS` rows will read.
template <class Tile, int ROWS, class T>
__device__ inline void prefetch_tile(const T* from, uint32_t first_row, uint32_t limit,
                                     uint32_t inputs, uint32_t k, uint32_t k_end) {
  constexpr int lines = Tile::row_bytes / 128;
  for (int at = static_cast<int>(threadIdx.x); at < ROWS * lines; at += Tile::threads) {
    const uint32_t r = first_row + static_cast<uint32_t>(at / lines);
    const uint32_t column = k + static_cast<uint32_t>(at % lines) * 64;
    if (r < limit && column < k_end) prefetch_line(from + size_t{r} * inputs + column);
  }
}

/// Tiles of weights, behind those that have a place in shared memory, which are sent for before the
/// kernel before this one has ended.
constexpr int tiles_prefetched = 16;

/// Where a block's tiles of weights and rows come from, and their places in shared memory.
template <class T, class Tile> struct tile_reader {
  const mma_gemm_args& args;
  uint32_t base; ///< of the block's shared memory
  uint32_t first_m, first_n, k_begin, k_end;

  __device__ uint32_t place(int tile) const {
    return base + static_cast<uint32_t>(tile % Tile::STAGES * Tile::stage_bytes);
  }
  __device__ uint32_t from(int tile) const {
    return k_begin + static_cast<uint32_t>(tile) * Tile::BK;
  }
  __device__ void fetch_weights(int tile) const {
    load_tile<Tile, Tile::BN>(place(tile), static_cast<const T*>(args.w), first_n, args.outputs,
                              args.inputs, from(tile), k_end);
  }
  __device__ void prefetch_weights(int tile) const {
    prefetch_tile<Tile, Tile::BN>(static_cast<const T*>(args.w), first_n, args.outputs, args.inputs,
                                  from(tile), k_end);
  }
  __device__ void fetch_rows(int tile) const {
    load_tile<Tile, Tile::BM>(place(tile) + Tile::BN * Tile::row_bytes,
                              static_cast<const T*>(args.x), first_m, args.rows, args.inputs,
                              from(tile), k_end);
  }
};

/// The weights of the first AHEAD tiles, which no other kernel writes: their copies run while the
/// kernel before this one ends (with launch_early). Then x may be read.
template <int AHEAD, class Reader>
__device__ inline void begin_with_weights(int tiles, const Reader& read) {
#pragma unroll
  for (int s = 0; s < AHEAD; ++s)
    if (s < tiles) read.fetch_weights(s);
  for (int s = AHEAD; s < AHEAD + tiles_prefetched && s < tiles; ++s) read.prefetch_weights(s);
  begin_kernel();
}

/// Writes what a warp has summed, from row `first_m` and output `first_n` on.
template <int N, int M>
__device__ inline void store_sums(const mma_gemm_args& args, const float (&sums)[N][M][4],
                                  uint32_t first_m, uint32_t first_n) {
  const uint32_t lane = threadIdx.x % 32;
  float* out = args.out + blockIdx.z * args.split_stride;
#pragma unroll
  for (uint32_t n = 0; n < N; ++n)
#pragma unroll
    for (uint32_t m = 0; m < M; ++m)
#pragma unroll
      for (uint32_t i = 0; i < 4; ++i) {
        const uint32_t row = first_m + m * 8 + lane % 4 * 2 + i % 2;
        const uint32_t column = first_n + n * 16 + lane / 4 + i / 2 * 8;
        if (row < args.rows && column < args.outputs)
          out[size_t{row} * args.out_stride + column] = sums[n][m][i];
      }
}

/// After a split has written its part of a tile: the last one sums all of them, in ascending order,
/// and leaves the ticket as it was.
template <class Tile>
__device__ inline void sum_when_last(const mma_gemm_args& args, uint32_t first_m,
                                     uint32_t first_n) {
  if (args.tickets == nullptr) return;
  __shared__ uint32_t last;
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) {
    auto* ticket = args.tickets + blockIdx.y * gridDim.x + blockIdx.x;
    last = atomicAdd(ticket, 1) + 1 == gridDim.z ? 1 : 0;
    if (last != 0) *ticket = 0;
  }
  __syncthreads();
  if (last == 0) return;
  __threadfence();
#pragma unroll 4
  for (int i = static_cast<int>(threadIdx.x); i < Tile::BM * Tile::BN; i += Tile::threads) {
    const uint32_t row = first_m + static_cast<uint32_t>(i / Tile::BN);
    const uint32_t column = first_n + static_cast<uint32_t>(i % Tile::BN);
    if (row >= args.rows || column >= args.outputs) continue;
    const float* part = args.out + size_t{row} * args.out_stride + column;
    float sum = load_from_l2(part);
    for (uint32_t s = 1; s < gridDim.z; ++s) sum += load_from_l2(part + s * args.split_stride);
    args.sum[size_t{row} * args.sum_stride + column] = sum;
  }
}

} // namespace mma

/// Grid: (row tiles, output tiles, splits); the tiles of one weight tile run side by side, so that
/// it is read from memory once.
template <class T, class Tile>
__global__ void __launch_bounds__(Tile::threads) mma_gemm_kernel(mma_gemm_args args) {
  const uint32_t base = mma::shared_address(dynamic_shared());
  constexpr int fragments_n = Tile::WN / 16, fragments_m = Tile::WM / 8;

  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  const int warp_n = warp % (Tile::BN / Tile::WN) * Tile::WN;
  const int warp_m = warp / (Tile::BN / Tile::WN) * Tile::WM;
  const uint32_t first_m = blockIdx.x * Tile::BM, first_n = blockIdx.y * Tile::BN;
  const auto [k_begin, k_end, tiles] = mma::inputs_of_split<Tile>(args);
  const mma::tile_reader<T, Tile> read{args, base, first_m, first_n, k_begin, k_end};
  mma::begin_with_weights<Tile::STAGES - 1>(tiles, read);

  float sums[fragments_n][fragments_m][4] = {};
#pragma unroll
  for (int s = 0; s < Tile::STAGES - 1; ++s) {
    if (s < tiles) read.fetch_rows(s);
    mma::commit();
  }
  for (int tile = 0; tile < tiles; ++tile) {
    mma::wait_all_but<Tile::STAGES - 2>();
    // The tile is there for every thread, and every thread has left the tile before it, whose place
    // the next copies take.
    __syncthreads();
    if (const int next = tile + Tile::STAGES - 1; next < tiles) {
      read.fetch_weights(next);
      read.fetch_rows(next);
    }
    mma::commit();
    const uint32_t weights = read.place(tile);
    const uint32_t rows = weights + Tile::BN * Tile::row_bytes;
#pragma unroll
    for (int k = 0; k < Tile::BK / 16; ++k) {
      uint32_t a[fragments_n][4], b[fragments_m / 2][4];
#pragma unroll
      for (int n = 0; n < fragments_n; ++n)
        mma::load_matrices(
            a[n], weights + mma::swizzled<Tile>(warp_n + n * 16 + lane % 16, k * 2 + lane / 16));
#pragma unroll
      for (int m = 0; m < fragments_m / 2; ++m)
        mma::load_matrices(b[m],
                           rows
                               + mma::swizzled<Tile>(warp_m + m * 16 + lane / 16 * 8 + lane % 8,
                                                     k * 2 + lane / 8 % 2));
#pragma unroll
      for (int n = 0; n < fragments_n; ++n)
#pragma unroll
        for (int m = 0; m < fragments_m; ++m)
          mma::multiply_add<T>(sums[n][m], a[n], b[m / 2][m % 2 * 2], b[m / 2][m % 2 * 2 + 1]);
    }
  }
  mma::wait_all_but<0>();

  mma::store_sums(args, sums, first_m + static_cast<uint32_t>(warp_m),
                  first_n + static_cast<uint32_t>(warp_n));
  mma::sum_when_last<Tile>(args, first_m, first_n);
}

} // namespace lamella::gpu::cuda
