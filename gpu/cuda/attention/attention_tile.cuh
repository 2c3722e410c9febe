/// Attention of the columns of one warp over one tile of positions: the arithmetic that spans of
/// one row and of several rows share, so that a row's bits are the same in both.
///
/// A column is one query (row, g). Scores are K * Q^T and outputs V^T * P^T, both as
/// mma.m16n8k16 with positions (or elements of V) as the 16 rows and queries as the 8 columns, so a
/// group of up to 8 query heads fills a column tile. Columns of an mma do not mix. Every float
/// operation that rounds is written as an intrinsic: the compiler contracts none of them.
#pragma once

#include "gpu/cuda/attention/attention_primitives.cuh"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>
#include <type_traits>

namespace lamella::gpu::cuda {

inline constexpr uint32_t tile = attention_tile;
inline constexpr unsigned whole_warp = 0xffffffffu;
inline constexpr float log2_e = 1.4426950408889634f;

__device__ inline float infinity() { return __int_as_float(0x7f800000); }

/// Numbers of the wire's type on tensor cores. `quantised`: K and V lie in the cache as q8 and are
/// rounded to such numbers when they are read.
struct f16_math {
  static constexpr bool quantised = false;
  using element = __half;
  using pair = __half2;
  __device__ static void multiply(float (&sum)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
    multiply_halves(sum, a, b);
  }
  __device__ static pair narrow(float low, float high) { return __floats2half2_rn(low, high); }
  __device__ static float2 widen(pair x) { return __half22float2(x); }
};
struct bf16_math {
  static constexpr bool quantised = false;
  using element = __nv_bfloat16;
  using pair = __nv_bfloat162;
  __device__ static void multiply(float (&sum)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
    multiply_bfloats(sum, a, b);
  }
  __device__ static pair narrow(float low, float high) { return __floats2bfloat162_rn(low, high); }
  __device__ static float2 widen(pair x) { return __bfloat1622float2(x); }
};

/// K and V in q8, the rest of that type.
template <class wire> struct q8_math : wire { static constexpr bool quantised = true; };

/// Rounds a pair and gives back what it became.
template <class math> __device__ inline uint32_t round_pair(float& low, float& high) {
  const auto pair = math::narrow(low, high);
  const auto back = math::widen(pair);
  low = back.x, high = back.y;
  uint32_t bits;
  memcpy(&bits, &pair, sizeof bits);
  return bits;
}

/// Calls `f` with the math of a cache's type and a wire's.
template <class F> cudaError_t with_math(half_type type, half_type wire, F f) {
  if (type == half_type::f16) return f(f16_math{});
  if (type == half_type::bf16) return f(bf16_math{});
  if (type == half_type::q8 && wire == half_type::f16) return f(q8_math<f16_math>{});
  if (type == half_type::q8 && wire == half_type::bf16) return f(q8_math<bf16_math>{});
  return cudaErrorInvalidValue;
}

/// A tile of K or V in shared memory, at a multiple of 256 bytes: rows of D elements, their 16-byte
/// pieces exclusive-ored with the row, so that eight rows at one piece lie in different banks.
/// Addresses of a lane differ from piece to piece in a few bits, so one exclusive or makes the
/// next.
template <int D> struct tile_layout {
  static constexpr uint32_t row_bytes = D * 2;
  static constexpr uint32_t pieces = D / 8;
  static constexpr uint32_t bytes = tile * row_bytes;
  static constexpr uint32_t half = bytes / 2; ///< from a position to the one 16 later

  __device__ static uint32_t offset(uint32_t row, uint32_t piece) {
    return row * row_bytes + (piece ^ (row & 7)) * 16;
  }
  /// From a piece to the piece `away` pieces away; `away` even where pairs start at even pieces.
  __device__ static uint32_t moved(uint32_t address, uint32_t away) { return address ^ away * 16; }
  /// From a piece of a row to that of the row `rows` later; the two have no bit in common.
  __device__ static uint32_t later(uint32_t address, uint32_t rows) {
    return moved(address, rows & 7) + rows * row_bytes;
  }
};

/// 8 * N columns of one warp: queries, and what was attended to so far. Lane l holds columns
/// n * 8 + 2 * (l % 4) + {0, 1}; of those, elements 16 * i + l / 4 + {0, 8} of the sums.
template <class math, int D, int N> struct columns {
  static constexpr int steps = D / 16;
  uint32_t q[N][steps][2];
  float sum[N][steps][4]; ///< [.][.][element 8 later? 2 : 0 + column]
  float maximum[N][2];    ///< of score * scale * log2(e)
  float weight[N][2];     ///< the lane's share, until close()

  __device__ void clear() {
#pragma unroll
    for (int n = 0; n < N; ++n) {
#pragma unroll
      for (int i = 0; i < steps; ++i)
#pragma unroll
        for (int j = 0; j < 4; ++j) sum[n][i][j] = 0;
#pragma unroll
      for (int j = 0; j < 2; ++j) maximum[n][j] = -infinity(), weight[n][j] = 0;
    }
  }

  /// Queries `from`[count][D]; the others are zero.
  __device__ void load_queries(const typename math::element* from, int count) {
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int n = 0; n < N; ++n) {
      const int column = n * 8 + lane / 4;
      const auto* words = reinterpret_cast<const uint32_t*>(from) + column * (D / 2) + lane % 4;
#pragma unroll
      for (int i = 0; i < steps; ++i)
#pragma unroll
        for (int half = 0; half < 2; ++half)
          q[n][i][half] = column < count ? words[i * 8 + half * 4] : 0;
    }
  }

  using score_tile = float[N][2][4]; ///< [.][position / 16][position 8 later? 2 : 0 + column]

  __device__ void score(uint32_t k_tile, score_tile& s) const {
    using layout = tile_layout<D>;
    const uint32_t lane = threadIdx.x % 32;
    const uint32_t at = k_tile + layout::offset(lane % 16, lane / 16);
#pragma unroll
    for (int n = 0; n < N; ++n)
#pragma unroll
      for (int m = 0; m < 2; ++m)
#pragma unroll
        for (int j = 0; j < 4; ++j) s[n][m][j] = 0;
#pragma unroll
    for (int i = 0; i < steps; ++i)
#pragma unroll
      for (int m = 0; m < 2; ++m) {
        uint32_t k[4];
        load_matrices(k, layout::moved(at, i * 2) + m * layout::half);
#pragma unroll
        for (int n = 0; n < N; ++n) math::multiply(s[n][m], k, q[n][i]);
      }
  }

  /// Hides positions at and past the columns' limits; `first` is the tile's.
  __device__ static void hide(score_tile& s, const uint32_t (&limit)[N][2], uint32_t first) {
    const uint32_t lane = threadIdx.x % 32;
#pragma unroll
    for (int n = 0; n < N; ++n)
#pragma unroll
      for (int m = 0; m < 2; ++m)
#pragma unroll
        for (int j = 0; j < 4; ++j)
          if (first + m * 16 + lane / 4 + j / 2 * 8 >= limit[n][j % 2]) s[n][m][j] = -infinity();
  }

  /// Scores become probabilities against the running maximum, as the second operand of an mma.
  __device__ void weigh(score_tile& s, float scale, uint32_t (&p)[N][2][2]) {
    float keep[N][2];
    bool same = true;
#pragma unroll
    for (int n = 0; n < N; ++n) {
      float base[2];
#pragma unroll
      for (int j = 0; j < 2; ++j) {
        float top = fmaxf(fmaxf(s[n][0][j], s[n][0][j + 2]), fmaxf(s[n][1][j], s[n][1][j + 2]));
        for (int apart = 4; apart < 32; apart *= 2)
          top = fmaxf(top, __shfl_xor_sync(whole_warp, top, apart));
        const float next = fmaxf(maximum[n][j], __fmul_rn(top, scale));
        base[j] = next == -infinity() ? 0.0f : next;
        keep[n][j] = exp2_fast(__fsub_rn(maximum[n][j], base[j]));
        same = same && maximum[n][j] == next;
        maximum[n][j] = next;
      }
#pragma unroll
      for (int m = 0; m < 2; ++m) {
#pragma unroll
        for (int j = 0; j < 4; ++j)
          s[n][m][j] = exp2_fast(__fmaf_rn(s[n][m][j], scale, -base[j % 2]));
#pragma unroll
        for (int half = 0; half < 2; ++half)
          p[n][m][half] = transpose(round_pair<math>(s[n][m][half * 2], s[n][m][half * 2 + 1]));
      }
#pragma unroll
      for (int j = 0; j < 2; ++j) {
        const float more =
            __fadd_rn(__fadd_rn(s[n][0][j], s[n][0][j + 2]), __fadd_rn(s[n][1][j], s[n][1][j + 2]));
        weight[n][j] = __fmaf_rn(weight[n][j], keep[n][j], more);
      }
    }
    // Sums times one are the same sums.
    if (__all_sync(whole_warp, same)) return;
#pragma unroll
    for (int n = 0; n < N; ++n)
#pragma unroll
      for (int i = 0; i < steps; ++i)
#pragma unroll
        for (int j = 0; j < 4; ++j) sum[n][i][j] = __fmul_rn(sum[n][i][j], keep[n][j % 2]);
  }

  __device__ void add_values(uint32_t v_tile, const uint32_t (&p)[N][2][2]) {
    using layout = tile_layout<D>;
    const uint32_t lane = threadIdx.x % 32;
    const uint32_t at = v_tile + layout::offset(lane % 8 + lane / 16 * 8, lane / 8 % 2);
#pragma unroll
    for (int m = 0; m < 2; ++m)
#pragma unroll
      for (int i = 0; i < steps; ++i) {
        uint32_t v[4];
        load_transposed(v, layout::moved(at, i * 2) + m * layout::half);
#pragma unroll
        for (int n = 0; n < N; ++n) math::multiply(sum[n][i], v, p[n][m]);
      }
  }

  /// Makes the weight whole, in all lanes of a column.
  __device__ void close() {
#pragma unroll
    for (int n = 0; n < N; ++n)
#pragma unroll
      for (int j = 0; j < 2; ++j)
        for (int apart = 4; apart < 32; apart *= 2)
          weight[n][j] = __fadd_rn(weight[n][j], __shfl_xor_sync(whole_warp, weight[n][j], apart));
  }
};

/// How two parts of a softmax become one (L-M14): both are multiplied by what these say.
struct fold {
  float maximum, keep, add;
  __device__ fold(float earlier, float later) {
    maximum = fmaxf(earlier, later);
    const float base = maximum == -infinity() ? 0.0f : maximum;
    keep = exp2_fast(__fsub_rn(earlier, base));
    add = exp2_fast(__fsub_rn(later, base));
  }
  __device__ static float merged(float earlier, float keep, float later, float add) {
    return __fmaf_rn(later, add, __fmul_rn(earlier, keep));
  }
  __device__ float operator()(float earlier, float later) const {
    return merged(earlier, keep, later, add);
  }
};

} // namespace lamella::gpu::cuda
