/// The arithmetic of attention on tiles of matrices (N-M18). Included after `lanes` and
/// `tile_unit`.
///
/// K and V are bf16, which is what tiles multiply. Q is the sum of two bf16, high and low, so that
/// it counts with 16 bits: an error of a score is one of an exponent. A score is K x high and K x
/// low, summed in fp32 by the tile operation. The weights of positions are rounded to bf16.
/// Elements i and i + 16 of 32, of K or of positions, lie side by side as a pair, which one
/// operation adds.
///
/// A chunk of positions has one maximum of its scores, so that sums stay in tiles until its end.
/// What a query computes does not depend on the queries that share a tile with it, nor on which of
/// two matrices is the left one: each sum runs over ascending pairs either way.
#pragma once

#include "gpu/kernels/attention_parts.hpp"

namespace lamella::gpu {
namespace {

constexpr uint32_t tile_bytes = 1024;            ///< 16 rows of 16 pairs
constexpr uint32_t split_bytes = 2 * tile_bytes; ///< a tile of high parts, then one of low parts
constexpr uint32_t tile_queries = 16;
constexpr uint32_t block_positions = 32; ///< of values, which one tile operation sums
constexpr uint32_t chunk_blocks = chunk_positions / block_positions;

/// Sizes of the tiles of a head.
struct tiled_head {
  explicit tiled_head(const attention_shape& shape)
      : blocks{(shape.dim + 31) / 32}, value_tiles{shape.padded_dim / 16} {}

  uint32_t blocks;      ///< of 32 elements, which scores sum over
  uint32_t value_tiles; ///< of 16 elements of V

  size_t key_bytes() const { return size_t{blocks} * tile_bytes; }    ///< of 16 positions
  size_t query_bytes() const { return size_t{blocks} * split_bytes; } ///< of 16 queries
};

/// Rows that will be packed later: each is sent for beside one that is packed now. Into L2, as
/// tile_prefetch.
struct rows_ahead {
  const std::byte* const* rows = nullptr;
  size_t offset = 0;
  uint32_t count = 0, bytes = 0;

  rows_ahead from(uint32_t first) const {
    return {rows + first, offset, count > first ? count - first : 0, bytes};
  }
  [[gnu::always_inline]] void fetch(uint32_t i) const {
    if (i >= count) return;
    for (uint32_t at = 0; at < bytes; at += 64) __builtin_prefetch(rows[i] + offset + at, 0, 2);
  }
};

/// Calls f with each number below `count`: a constant where `known` is not 0.
template <int known, class F> [[gnu::always_inline]] inline void each_below(uint32_t count, F&& f) {
  if constexpr (known != 0)
    unroll<known>(f);
  else
    for (uint32_t i = 0; i < count; ++i) f(i);
}

/// K from `offset` bytes on in `rows`, which has `count` of at most 16, as the rows of tiles:
/// [blocks of 32 elements][16][16 pairs]. Rows beyond `count` are not written.
/// vectors: dim / 16, or 0 when only known at run time.
template <int vectors>
void pack_keys(const std::byte* const* rows, size_t offset, uint32_t count, uint32_t dim,
               std::byte* tiles, const rows_ahead next = {}) {
  const auto n = vectors != 0 ? vectors : dim / 16;
  for (uint32_t i = 0; i < count; ++i) {
    next.fetch(i);
    const auto* row = rows[i] + offset;
    auto* to = tiles + i * 64;
    each_below<(vectors + 1) / 2>((n + 1) / 2, [&](auto b) __attribute__((always_inline)) {
      const auto y = 2 * b + 1 < n ? lanes::load_bf16(row + b * 64 + 32) : lanes::zero();
      lanes::store_bf16_pairs(to + b * tile_bytes, lanes::load_bf16(row + b * 64), y);
    });
  }
}

/// Queries, vectors of padded_dim, as the rows of tiles:
/// [blocks of 32 elements][high, low][16][16 pairs].
inline void pack_queries(const float* q, uint32_t count, uint32_t padded_dim, std::byte* tiles) {
  for (uint32_t i = 0; i < count; ++i, q += padded_dim)
    for (uint32_t j = 0; j < padded_dim; j += 32) {
      const auto x = lanes::load(q + j);
      const auto y = j + 16 < padded_dim ? lanes::load(q + j + 16) : lanes::zero();
      auto* to = tiles + j / 32 * split_bytes + i * 64;
      lanes::store_bf16_pairs(to, x, y);
      lanes::store_bf16_pairs(to + tile_bytes, lanes::beyond_bf16(x), lanes::beyond_bf16(y));
    }
}

/// `count` tiles with rows and pairs exchanged.
inline void transpose_tiles(const std::byte* tiles, uint32_t count, std::byte* to) {
  for (uint32_t i = 0; i < count; ++i, tiles += tile_bytes, to += tile_bytes)
    lanes::transpose(tiles, to);
}

/// V of at most 32 positions, `tiles` of 16 elements each from the `first` on:
/// [tiles][16 pairs of positions][16 elements]. Positions beyond `count` are 0: what is not seen
/// has the weight 0. known: `tiles`, or 0.
template <int known>
void pack_values(const std::byte* const* rows, size_t offset, uint32_t count, uint32_t first,
                 uint32_t tiles, std::byte* to, const rows_ahead next = {}) {
  const auto both = count > 16 ? count - 16 : 0, some = count < 16 ? count : 16;
  offset += size_t{first} * 32;
  for (uint32_t i = 0; i < both; ++i, to += 64) {
    next.fetch(i);
    next.fetch(i + 16);
    const auto *x = rows[i] + offset, *y = rows[i + 16] + offset;
    each_below<known>(
        tiles, [&](auto j) __attribute__((always_inline)) {
          lanes::store_bf16_pairs(to + j * tile_bytes, lanes::load_bf16(x + j * 32),
                                  lanes::load_bf16(y + j * 32));
        });
  }
  for (uint32_t i = both; i < 16; ++i, to += 64)
    for (uint32_t j = 0; j < tiles; ++j)
      lanes::store_bf16_pairs(
          to + j * tile_bytes,
          i < some ? lanes::load_bf16(rows[i] + offset + j * 32) : lanes::zero(), lanes::zero());
}

/// Where the tiles of one side of products are: at first + i * apart + d * next, lines `stride`
/// bytes apart. Of queries these are the high parts, and the low parts follow.
struct tile_side {
  const std::byte* first;
  size_t apart, next, stride = 64;

  const std::byte* at(size_t i, size_t d) const { return first + i * apart + d * next; }
};

/// Scores add products of K and Q to the sums in registers, at most four: of `lefts` x `rights`
/// tiles. `keys_left`: K is on the left.
template <bool keys_left> struct score_step {
  template <int lefts, int rights>
  [[gnu::always_inline]] static void add(const tile_unit::halves& unit, const tile_side& left,
                                         const tile_side& right, size_t d) {
    unroll<rights>(LAMELLA_UNROLLED(i) {
      unit.template load<6>(right.at(i, d), 64);
      if constexpr (keys_left) unit.template load<7>(right.at(i, d) + tile_bytes, 64);
      unroll<lefts>(LAMELLA_UNROLLED(g) {
        constexpr int sums = g * rights + i;
        unit.template load<4>(left.at(g, d), 64);
        if constexpr (!keys_left) unit.template load<5>(left.at(g, d) + tile_bytes, 64);
        // K x high, then K x low.
        unit.template multiply<sums, 4, 6>();
        if constexpr (keys_left)
          unit.template multiply<sums, 4, 7>();
        else
          unit.template multiply<sums, 5, 6>();
      });
    });
  }
};

/// Values add products of weights, on the left, and V.
struct value_step {
  template <int lefts, int rights>
  [[gnu::always_inline]] static void add(const tile_unit::halves& unit, const tile_side& left,
                                         const tile_side& right, size_t d) {
    unroll<lefts>(LAMELLA_UNROLLED(g) { unit.template load<4 + g>(left.at(g, d), left.stride); });
    unroll<rights>(LAMELLA_UNROLLED(i) {
      unit.template load<6 + i % 2>(right.at(i, d), right.stride);
      unroll<lefts>(
          LAMELLA_UNROLLED(g) { unit.template multiply<g * rights + i, 4 + g, 6 + i % 2>(); });
    });
  }
};

template <int count> void clear_sums(const tile_unit::halves& unit) {
  unroll<count>(LAMELLA_UNROLLED(i) { unit.template zero<i>(); });
}

/// The sums to out + g * left_apart + i * right_apart, lines `stride` floats apart.
template <int lefts, int rights>
void store_sums(const tile_unit::halves& unit, float* out, size_t left_apart, size_t right_apart,
                size_t stride) {
  unroll<lefts>(LAMELLA_UNROLLED(g) {
    unroll<rights>(LAMELLA_UNROLLED(i) {
      unit.template store<g * rights + i>(out + g * left_apart + i * right_apart, stride * 4);
    });
  });
}

/// Products of tiles, summed over d below `depth`.
template <class step, int lefts, int rights>
void multiply_tiles(const tile_unit::halves& unit, uint32_t depth, const tile_side& left,
                    const tile_side& right, float* out, size_t left_apart, size_t right_apart,
                    size_t stride) {
  static_assert(lefts * rights <= 4);
  clear_sums<lefts * rights>(unit);
  for (uint32_t d = 0; d < depth; ++d) step::template add<lefts, rights>(unit, left, right, d);
  store_sums<lefts, rights>(unit, out, left_apart, right_apart, stride);
}

/// 2^t for t <= 0, relative error below 3e-6; 1 at 0; 2^-126 below that; NaN stays NaN.
[[gnu::always_inline]] inline vec power_of_two(vec t) {
  t = lanes::max(lanes::set(-126.0f), t);
  const auto n = lanes::round(t);
  t = lanes::sub(t, n);
  auto p = lanes::set(0x1.3a02ccp-7f);
  p = lanes::fma(p, t, lanes::set(0x1.c9fc46p-5f));
  p = lanes::fma(p, t, lanes::set(0x1.ec0378p-3f));
  p = lanes::fma(p, t, lanes::set(0x1.62e12cp-1f));
  p = lanes::fma(p, t, lanes::set(1.0f));
  return lanes::times_power_of_two(p, n);
}

/// Scores of queries with the positions of a chunk: a line of each, in place of which its weights
/// come.
struct score_lines {
  static constexpr size_t stride = chunk_positions + 16; ///< floats; the rest: other cache sets

  float* first;

  float* line(size_t query) const { return first + query * stride; }
  /// The weights from `query` on as the left of products with V, over blocks of positions.
  tile_side weights(size_t query) const {
    return {reinterpret_cast<const std::byte*>(line(query)), tile_queries * stride * 4, 64,
            stride * 4};
  }
};

/// Turns the scores of a query, which sees the first `count` positions, into weights of `blocks`.
/// Gives maximum and sum to state[0] and [1].
inline void weigh_line(float* line, uint32_t count, uint32_t blocks, float* state) {
  const auto at = [&](uint32_t i) { return lanes::load(line + i); };
  const auto some = [&](uint32_t i) { return lanes::keep_first(at(i), count - i, no_score); };
  const auto whole = count / 16 * 16;
  vec highest[2]{lanes::set(no_score), lanes::set(no_score)};
  uint32_t i = 0;
  for (; i + 32 <= whole; i += 32) {
    highest[0] = lanes::max(highest[0], at(i));
    highest[1] = lanes::max(highest[1], at(i + 16));
  }
  if (i < whole) highest[0] = lanes::max(highest[0], at(i));
  if (whole < count) highest[1] = lanes::max(highest[1], some(whole));
  state[0] = lanes::maximum(lanes::max(highest[0], highest[1]));

  const auto maximum = lanes::set(state[0]), to_binary = lanes::set(0x1.715476p+0f);
  const auto weight = [&](vec x) __attribute__((always_inline)) {
    return power_of_two(lanes::mul(lanes::sub(x, maximum), to_binary));
  };
  const auto put = [&](uint32_t block, vec x, vec y) __attribute__((always_inline)) {
    // Scores that are still to be read lie behind.
    lanes::store_rounded_pairs(reinterpret_cast<std::byte*>(line) + block * 64, x, y);
  };
  auto sum = lanes::zero();
  const auto full = count / block_positions;
  for (uint32_t b = 0; b < full; ++b) {
    const auto x = weight(at(b * 32)), y = weight(at(b * 32 + 16));
    sum = lanes::add(lanes::add(sum, x), y);
    put(b, x, y);
  }
  for (auto b = full; b < blocks; ++b) {
    const auto left = count > b * 32 ? count - b * 32 : 0;
    const auto seen = [&](uint32_t from) {
      if (left <= from) return lanes::zero();
      const auto n = left - from;
      const auto w = weight(at(b * 32 + from));
      return n < 16 ? lanes::keep_first(w, n, 0.0f) : w;
    };
    const auto x = seen(0), y = seen(16);
    sum = lanes::add(lanes::add(sum, x), y);
    put(b, x, y);
  }
  state[1] = lanes::sum(sum);
}

} // namespace
} // namespace lamella::gpu
