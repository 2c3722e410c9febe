/// Tiles of a cache of q8 in shared memory, and how they become tiles of 16 bits.
///
/// Tiles wait as they lie in the cache, so as many more of them are on their way; each is widened
/// once, just before its matmuls, by those who share it.
#pragma once

#include "gpu/cuda/attention/attention_tile.cuh"

namespace lamella::gpu::cuda {

/// A tile of K or V as it lies in the cache. Rows of 36 or 20 words: lanes that each read a piece
/// of a row of their own meet in no bank.
template <int D> struct q8_layout {
  static constexpr uint32_t pieces = D / 16; ///< of values
  static constexpr uint32_t scale_piece = pieces;
  static constexpr uint32_t row_bytes = (pieces + 1) * 16;
  static constexpr uint32_t scale_at = row_bytes - sizeof(float);
  static constexpr uint32_t bytes = tile * row_bytes;
  static_assert(row_bytes == head_bytes_of(half_type::q8, D));

  __device__ static uint32_t offset(uint32_t row, uint32_t piece) {
    return row * row_bytes + piece * 16;
  }
  __device__ static uint32_t later(uint32_t address, uint32_t rows) {
    return address + rows * row_bytes;
  }
};

/// How a tile waits in shared memory.
template <class math, int D>
using stored_layout = std::conditional_t<math::quantised, q8_layout<D>, tile_layout<D>>;

/// Four values in a word, times the scale, rounded. A byte that was raised by 128, behind the
/// exponent of 2^23, is a float less 2^23 + 128, exactly.
template <class math> __device__ inline uint2 widen_word(uint32_t word, float scale) {
  const uint32_t raised = word ^ 0x80808080u;
  float x[4];
#pragma unroll
  for (uint32_t i = 0; i < 4; ++i)
    x[i] = __fmul_rn(scale, __fsub_rn(__uint_as_float(__byte_perm(raised, 0x4b000000u, 0x7440 + i)),
                                      8388736.0f));
  return {round_pair<math>(x[0], x[1]), round_pair<math>(x[2], x[3])};
}

/// One piece of a row from a stored tile into one of 16 bits.
template <class math, int D>
__device__ inline void widen_piece(uint32_t stored, uint32_t to, uint32_t row, uint32_t piece) {
  using layout = q8_layout<D>;
  const float scale =
      __uint_as_float(load_shared_word(stored + layout::offset(row, 0) + layout::scale_at));
  const uint4 values = load_shared(stored + layout::offset(row, piece));
  const uint2 a = widen_word<math>(values.x, scale), b = widen_word<math>(values.y, scale);
  const uint2 c = widen_word<math>(values.z, scale), d = widen_word<math>(values.w, scale);
  store_shared(to + tile_layout<D>::offset(row, piece * 2), {a.x, a.y, b.x, b.y});
  store_shared(to + tile_layout<D>::offset(row, piece * 2 + 1), {c.x, c.y, d.x, d.y});
}

/// A tile that is ready for matmuls: `stored`, or `room` where it was widened to, by all lanes of
/// a warp. Nobody may still read the room.
template <class math, int D>
__device__ inline uint32_t widened_by_warp(uint32_t stored, uint32_t room) {
  if constexpr (math::quantised) {
#pragma unroll
    for (uint32_t piece = 0; piece < q8_layout<D>::pieces; ++piece)
      widen_piece<math, D>(stored, room, threadIdx.x % 32, piece);
    __syncwarp();
    return room;
  } else {
    return stored;
  }
}

/// The same of a tile of K and the one of V behind it, by all threads of a block.
template <class math, int D, uint32_t threads>
__device__ inline uint32_t widened_by_block(uint32_t stored, uint32_t room) {
  if constexpr (math::quantised) {
    using layout = q8_layout<D>;
    for (uint32_t i = threadIdx.x; i < 2 * tile * layout::pieces; i += threads) {
      const uint32_t value = i / (tile * layout::pieces);
      widen_piece<math, D>(stored + value * layout::bytes, room + value * tile_layout<D>::bytes,
                           i % tile, i / tile % layout::pieces);
    }
    __syncthreads();
    return room;
  } else {
    return stored;
  }
}

} // namespace lamella::gpu::cuda
