/// The product of mma_gemm.cuh on wgmma, the matrix instructions of sm_90a: a warpgroup multiplies
/// 64 rows of w by BM rows of x, both out of shared memory.
///
/// The same chain over ascending k in steps of 16, so rows are as invariant here as there. Whether
/// the two instructions cut sums alike is the chip's business: tuning compares the bytes.
///
/// Tiles lie in shared memory as rows of 128 bytes whose 16-byte chunks are exchanged by the row's
/// low three bits, which is what the 128-byte swizzle of the instruction expects.
#pragma once

#include "gpu/cuda/gemm/mma_gemm.cuh"

namespace lamella::gpu::cuda {

/// BM rows of x (16, 64, 128 or 256) by BN rows of w, 64 of them per warpgroup.
template <int BM_, int BN_, int STAGES_> struct wgmma_tile {
  static constexpr int BM = BM_, BN = BN_, BK = 64, STAGES = STAGES_;
  static constexpr int threads = BN / 64 * 128;
  static constexpr int row_bytes = BK * 2;
  static constexpr int chunks = BK / 8;
  static constexpr int stage_bytes = (BM + BN) * row_bytes;
  static constexpr int shared_bytes = STAGES * stage_bytes + 1024; ///< room to align
  static_assert(BN % 64 == 0 && STAGES >= 3);
  static_assert((BM * chunks) % threads == 0 && (BN * chunks) % threads == 0);
  static_assert((BM * row_bytes) % 1024 == 0, "a swizzled tile begins at a multiple of 1024");
};

namespace wgmma {

/// A tile whose rows follow each other at 128 bytes, groups of eight at 1024, from `address` on.
__device__ inline uint64_t descriptor(uint32_t address) {
  constexpr uint64_t swizzle_128 = uint64_t{1} << 62, eight_rows = uint64_t{1024 >> 4} << 32;
  return swizzle_128 | eight_rows | uint64_t{1} << 16 | ((address & 0x3ffff) >> 4);
}

} // namespace wgmma

// Instructions; an emulated device has its own.
#ifndef LAMELLA_EMULATED_DEVICE
namespace wgmma {

// Orders register and shared-memory accesses before the multiplications that follow.
__device__ inline void fence() { asm volatile("wgmma.fence.sync.aligned;\n" ::: "memory"); }
__device__ inline void commit() { asm volatile("wgmma.commit_group.sync.aligned;\n" ::: "memory"); }
template <int N> __device__ inline void wait_all_but() {
  asm volatile("wgmma.wait_group.sync.aligned %0;\n" ::"n"(N) : "memory");
}

/// What this thread wrote to shared memory becomes visible to the matrix units.
__device__ inline void publish_shared() {
  asm volatile("fence.proxy.async.shared::cta;\n" ::: "memory");
}

#define LAMELLA_F8(d, i)                                                                           \
  "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), "+f"(d[i + 4]), "+f"(d[i + 5]),      \
      "+f"(d[i + 6]), "+f"(d[i + 7])
#define LAMELLA_R8 "%0, %1, %2, %3, %4, %5, %6, %7"
#define LAMELLA_R32                                                                                \
  LAMELLA_R8 ", %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, "    \
             "%24, %25, %26, %27, %28, %29, %30, %31"
#define LAMELLA_R64                                                                                \
  LAMELLA_R32                                                                                      \
  ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, "                  \
  "%47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"

/// d += a * b^T. a has 64 rows; b has twice as many as d has elements.
template <class T> __device__ inline void multiply_add(float (&d)[8], uint64_t a, uint64_t b) {
  if constexpr (std::is_same_v<T, __half>)
    asm volatile("wgmma.mma_async.sync.aligned.m64n16k16.f32.f16.f16 {" LAMELLA_R8
                 "}, %8, %9, 1, 1, 1, 0, 0;\n"
                 : LAMELLA_F8(d, 0)
                 : "l"(a), "l"(b));
  else
    asm volatile("wgmma.mma_async.sync.aligned.m64n16k16.f32.bf16.bf16 {" LAMELLA_R8
                 "}, %8, %9, 1, 1, 1, 0, 0;\n"
                 : LAMELLA_F8(d, 0)
                 : "l"(a), "l"(b));
}

template <class T> __device__ inline void multiply_add(float (&d)[32], uint64_t a, uint64_t b) {
  if constexpr (std::is_same_v<T, __half>)
    asm volatile("wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {" LAMELLA_R32
                 "}, %32, %33, 1, 1, 1, 0, 0;\n"
                 : LAMELLA_F8(d, 0), LAMELLA_F8(d, 8), LAMELLA_F8(d, 16), LAMELLA_F8(d, 24)
                 : "l"(a), "l"(b));
  else
    asm volatile("wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {" LAMELLA_R32
                 "}, %32, %33, 1, 1, 1, 0, 0;\n"
                 : LAMELLA_F8(d, 0), LAMELLA_F8(d, 8), LAMELLA_F8(d, 16), LAMELLA_F8(d, 24)
                 : "l"(a), "l"(b));
}

template <class T> __device__ inline void multiply_add(float (&d)[64], uint64_t a, uint64_t b) {
  if constexpr (std::is_same_v<T, __half>)
    asm volatile("wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 {" LAMELLA_R64
                 "}, %64, %65, 1, 1, 1, 0, 0;\n"
                 : LAMELLA_F8(d, 0), LAMELLA_F8(d, 8), LAMELLA_F8(d, 16), LAMELLA_F8(d, 24),
                   LAMELLA_F8(d, 32), LAMELLA_F8(d, 40), LAMELLA_F8(d, 48), LAMELLA_F8(d, 56)
                 : "l"(a), "l"(b));
  else
    asm volatile("wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {" LAMELLA_R64
                 "}, %64, %65, 1, 1, 1, 0, 0;\n"
                 : LAMELLA_F8(d, 0), LAMELLA_F8(d, 8), LAMELLA_F8(d, 16), LAMELLA_F8(d, 24),
                   LAMELLA_F8(d, 32), LAMELLA_F8(d, 40), LAMELLA_F8(d, 48), LAMELLA_F8(d, 56)
                 : "l"(a), "l"(b));
}

#undef LAMELLA_F8
#undef LAMELLA_R8
#undef LAMELLA_R32
#undef LAMELLA_R64

} // namespace wgmma
#endif

namespace wgmma {

/// Writes what a warpgroup has summed, from row `first_m` and output `first_n` on.
template <int M, int N>
__device__ inline void store_sums(const mma_gemm_args& args, const float (&sums)[M][N],
                                  uint32_t first_m, uint32_t first_n) {
  const uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32 % 4;
  float* out = args.out + blockIdx.z * args.split_stride;
#pragma unroll
  for (uint32_t m = 0; m < M; ++m)
#pragma unroll
    for (uint32_t i = 0; i < N; ++i) {
      const uint32_t row = first_m + m * N * 2 + i / 4 * 8 + lane % 4 * 2 + i % 2;
      const uint32_t column = first_n + warp * 16 + lane / 4 + i / 2 % 2 * 8;
      if (row < args.rows && column < args.outputs)
        out[size_t{row} * args.out_stride + column] = sums[m][i];
    }
}

} // namespace wgmma

/// Grid as in mma_gemm_kernel. Copies run STAGES - 2 tiles ahead: the multiplications of one tile
/// may still be reading while the next are started.
template <class T, class Tile>
__global__ void __launch_bounds__(Tile::threads) wgmma_gemm_kernel(mma_gemm_args args) {
  const uint32_t base = (mma::shared_address(dynamic_shared()) + 1023) & ~1023u;
  constexpr int ahead = Tile::STAGES - 2;
  constexpr int step = Tile::BM < 128 ? Tile::BM : 128; ///< rows of x per instruction

  const int group = static_cast<int>(threadIdx.x) / 128;
  const uint32_t first_m = blockIdx.x * Tile::BM, first_n = blockIdx.y * Tile::BN;
  const auto [k_begin, k_end, tiles] = mma::inputs_of_split<Tile>(args);
  const mma::tile_reader<T, Tile> read{args, base, first_m, first_n, k_begin, k_end};
  mma::begin_with_weights<ahead>(tiles, read);

  float sums[Tile::BM / step][step / 2] = {};
#pragma unroll
  for (int s = 0; s < ahead; ++s) {
    if (s < tiles) read.fetch_rows(s);
    mma::commit();
  }
  for (int tile = 0; tile < tiles; ++tile) {
    mma::wait_all_but<ahead - 1>();
    wgmma::publish_shared();
    // Every thread's part of the tile is there, and every warpgroup has finished the tile before
    // the last one, whose place the next copies take.
    __syncthreads();
    const uint32_t weights = read.place(tile) + static_cast<uint32_t>(group * 64 * Tile::row_bytes);
    const uint32_t rows = read.place(tile) + Tile::BN * Tile::row_bytes;
    wgmma::fence();
#pragma unroll
    for (int k = 0; k < Tile::BK / 16; ++k)
#pragma unroll
      for (int m = 0; m < Tile::BM / step; ++m)
        wgmma::multiply_add<T>(sums[m], wgmma::descriptor(weights + k * 32),
                               wgmma::descriptor(rows + m * step * Tile::row_bytes + k * 32));
    wgmma::commit();
    if (tile + ahead < tiles) {
      read.fetch_weights(tile + ahead);
      read.fetch_rows(tile + ahead);
    }
    mma::commit();
    wgmma::wait_all_but<1>();
  }
  wgmma::wait_all_but<0>();
  mma::wait_all_but<0>();

  wgmma::store_sums(args, sums, first_m, first_n + static_cast<uint32_t>(group * 64));
  mma::sum_when_last<Tile>(args, first_m, first_n);
}

} // namespace lamella::gpu::cuda
