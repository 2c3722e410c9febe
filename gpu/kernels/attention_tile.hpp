/// The arithmetic of attention: one tile of up to 16 positions, for any number of queries.
///
/// A query is one query head of one row. Its running state is an unnormalised output, the maximum
/// of its scores and the sum of their weights. What a query computes does not depend on the queries
/// it shares a tile with, nor on whether K and V are read from the cache or from a widened copy.
/// Included after `lanes`.
#pragma once

#include "gpu/kernels/cached.hpp"
#include "gpu/kernels/operators.hpp"
#include "gpu/kernels/unroll.hpp"
#include "gpu/kernels/vector_math.hpp"

#include <limits>

namespace lamella::gpu {
namespace {

using vec = lanes::vec;

constexpr uint32_t tile_positions = 16;
constexpr uint32_t chunk_positions = 256;
constexpr float no_score = -std::numeric_limits<float>::infinity();

/// The state of one query: sums [padded_dim], then maximum and weight.
struct query_state {
  float *sums, *maximum, *weight;
};

/// Queries in memory: vectors of padded_dim elements, `stride` floats apart.
struct query_block {
  const float* q; ///< scaled
  float* states;  ///< sums [padded_dim], maximum, weight; `state_stride` apart
  size_t stride, state_stride;
  uint32_t padded_dim;

  query_state state(size_t i) const {
    float* s = states + i * state_stride;
    return {s, s + padded_dim, s + padded_dim + 1};
  }
};

/// K and V of one kv head at the positions of a tile. `rows` has 16 valid pointers, whatever the
/// number of positions that count.
struct tile_source {
  const std::byte* const* rows;
  size_t k_offset, v_offset; ///< bytes
  size_t scales;             ///< bytes from K, and from V, to its scales, as scales_at() has it
};

/// What to prefetch while a tile is worked on: the same 16 rows of the tile to come. Into L2: a
/// core can have more lines on their way to L2 than to L1.
struct tile_prefetch {
  const std::byte* const* rows;
  size_t k_offset, v_offset;
  uint32_t bytes; ///< of K and of V per row; 0: nothing

  [[gnu::always_inline]] void four_rows(uint32_t first) const {
    for (uint32_t i = first; i < first + 4; ++i)
      for (uint32_t at = 0; at < bytes; at += 64) {
        __builtin_prefetch(rows[i] + k_offset + at, 0, 2);
        __builtin_prefetch(rows[i] + v_offset + at, 0, 2);
      }
  }
};

/// Scores of `queries` queries with 16 positions; lanes from `count` on are meaningless.
/// vectors: padded_dim / 16, or 0 when only known at run time.
template <half_type type, int vectors, int queries>
[[gnu::always_inline]] inline void scores(const query_block& block, size_t first,
                                          const tile_source& source, uint32_t count,
                                          const tile_prefetch& next, vec (&out)[queries]) {
  const uint32_t n = vectors != 0 ? vectors : block.padded_dim / 16;
  const float* q = block.q + first * block.stride;
  lanes::partial part[4][queries];
  constexpr int at_once = lanes::key_rows(queries);
  const auto quarter_of_tile = [&](uint32_t quarter) __attribute__((always_inline)) {
    vec sums[4][queries];
    unroll<4>(LAMELLA_UNROLLED(i) {
      unroll<queries>(LAMELLA_UNROLLED(g) { sums[i][g] = lanes::zero(); });
    });
    if (quarter * 4 < count) {
      const std::byte* const* rows = source.rows + quarter * 4;
      unroll<4 / at_once>(LAMELLA_UNROLLED(part_of_rows) {
        constexpr int row = part_of_rows * at_once;
        auto multiply = [&](uint32_t j) __attribute__((always_inline)) {
          vec k[at_once];
          unroll<at_once>(LAMELLA_UNROLLED(i) {
            k[i] = load_cached<type>(rows[row + i] + source.k_offset, j, source.scales);
          });
          unroll<queries>(LAMELLA_UNROLLED(g) {
            auto x = lanes::load(q + g * block.stride + j * 16);
            unroll<at_once>(
                LAMELLA_UNROLLED(i) { sums[row + i][g] = lanes::fma(k[i], x, sums[row + i][g]); });
          });
        };
        if constexpr (vectors != 0)
          unroll<vectors>(LAMELLA_UNROLLED(j) { multiply(j); });
        else
          for (uint32_t j = 0; j < n; ++j) multiply(j);
      });
      next.four_rows(quarter * 4);
    }
    unroll<queries>(LAMELLA_UNROLLED(g) {
      part[quarter][g] = lanes::partial_sums(sums[0][g], sums[1][g], sums[2][g], sums[3][g]);
    });
  };
  if constexpr (lanes::unrolled_quarters)
    unroll<4>(LAMELLA_UNROLLED(quarter) { quarter_of_tile(quarter); });
  else
    for (uint32_t quarter = 0; quarter < 4; ++quarter) quarter_of_tile(quarter);
  unroll<queries>(LAMELLA_UNROLLED(g) {
    out[g] = lanes::sums(part[0][g], part[1][g], part[2][g], part[3][g]);
  });
}

/// What queries take of the values of a tile.
struct tile_weights {
  const float* weights;
  size_t query_stride, position_stride; ///< floats
  const float* factors;                 ///< of the sums before

  [[gnu::always_inline]] float of(size_t query, size_t position) const {
    return weights[query * query_stride + position * position_stride];
  }
};

/// Adds weighted values of `count` positions to the sums of `queries` queries, which are scaled by
/// their factors before.
template <half_type type, int vectors, int queries>
[[gnu::always_inline]] inline void add_values(const query_block& block, size_t first,
                                              const tile_source& source, uint32_t count,
                                              const tile_weights& weights) {
  constexpr int wide = lanes::value_vectors(queries);
  const uint32_t n = vectors != 0 ? vectors : block.padded_dim / 16;
  auto columns = [&](auto width, uint32_t j) __attribute__((always_inline)) {
    constexpr int w = decltype(width)::value;
    float* sums[queries];
    vec total[queries][w];
    unroll<queries>(LAMELLA_UNROLLED(g) {
      sums[g] = block.states + (first + g) * block.state_stride + j * 16;
      unroll<w>(LAMELLA_UNROLLED(c) {
        total[g][c] = lanes::mul(lanes::load(sums[g] + c * 16), lanes::set(weights.factors[g]));
      });
    });
    for (uint32_t i = 0; i < count; ++i) {
      const auto* head = source.rows[i] + source.v_offset;
      vec v[w];
      unroll<w>(LAMELLA_UNROLLED(c) { v[c] = load_cached<type>(head, j + c, source.scales); });
      unroll<queries>(LAMELLA_UNROLLED(g) {
        auto x = lanes::set(weights.of(g, i));
        unroll<w>(LAMELLA_UNROLLED(c) { total[g][c] = lanes::fma(x, v[c], total[g][c]); });
      });
    }
    unroll<queries>(LAMELLA_UNROLLED(g) {
      unroll<w>(LAMELLA_UNROLLED(c) { lanes::store(sums[g] + c * 16, total[g][c]); });
    });
  };
  uint32_t j = 0;
  for (; j + wide <= n; j += wide) columns(std::integral_constant<int, wide>{}, j);
  if constexpr (vectors == 0 || vectors % wide != 0)
    for (; j < n; ++j) columns(std::integral_constant<int, 1>{}, j);
}

/// One tile for `queries` queries from `first` on: scores, running maximum, weights, values.
template <half_type type, int vectors, int queries>
void attend_tile(const query_block& block, size_t first, const tile_source& source, uint32_t count,
                 const tile_prefetch& next) {
  alignas(64) float weights[queries][tile_positions];
  float factor[queries];
  vec score[queries];
  scores<type, vectors, queries>(block, first, source, count, next, score);
  unroll<queries>(LAMELLA_UNROLLED(g) {
    auto state = block.state(first + g);
    auto x = lanes::keep_first(score[g], count, no_score);
    auto highest = lanes::maximum(x);
    factor[g] = 1.0f;
    if (!(highest <= *state.maximum)) {
      factor[g] = exp_one(*state.maximum - highest);
      *state.maximum = highest;
    }
    auto e = exp_lanes(lanes::sub(x, lanes::set(*state.maximum)));
    lanes::store(weights[g], e);
    *state.weight = *state.weight * factor[g] + lanes::sum(e);
  });
  add_values<type, vectors, queries>(block, first, source, count,
                                     {weights[0], tile_positions, 1, factor});
}

/// One tile for queries [first, last).
template <half_type type, int vectors>
void attend_tile_all(const query_block& block, size_t first, size_t last, const tile_source& source,
                     uint32_t count, tile_prefetch next) {
  // As few tiles as can be, of nearly equal numbers of queries.
  for (auto t = (last - first + lanes::queries - 1) / lanes::queries; t > 0; --t) {
    const auto some = static_cast<int>((last - first + t - 1) / t);
    with_constant<1, lanes::queries>(some, [&](auto queries) {
      attend_tile<type, vectors, decltype(queries)::value>(block, first, source, count, next);
    });
    first += some;
    next.bytes = 0;
  }
}

/// The state of a query that has seen no position.
inline void clear_state(float* state, uint32_t padded_dim) {
  for (uint32_t j = 0; j < padded_dim; j += 16) lanes::store(state + j, lanes::zero());
  state[padded_dim] = no_score;
  state[padded_dim + 1] = 0;
}

} // namespace
} // namespace lamella::gpu
