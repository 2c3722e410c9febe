/// Attention of many rows of one sequence to its earlier positions. Included after `lanes`.
///
/// Here a lane is a query. So scores need no sums across lanes: what a decoded row adds across the
/// lanes of a vector is added from sixteen vectors, in the same order. K and V of a chunk are
/// widened once per block of rows. All queries take a step of a tile before the next step: scores,
/// weights, values. The turns of these loops do not wait for each other.
#pragma once

#include "gpu/kernels/attention_parts.hpp"

namespace lamella::gpu {
namespace {

constexpr uint32_t rows_at_once = 16; // their queries stay in the first level of the cache
constexpr uint32_t lane_queries = 16;

/// A block of rows of one span, for one head.
struct row_item {
  const attention_span* span;
  uint32_t first_row, rows; ///< within the span
  uint32_t head;
};

/// Some positions of one head, widened: `count` of them from `position` on.
struct row_tile {
  const float* k;     ///< [16, padded_dim]
  tile_source values; ///< V
  uint32_t position, count;
};

/// at(first) and the others of sixteen, added in an order of `lanes`. In statements: arguments of
/// one call may be taken in any order, and would all be kept until the last.
template <int first, class At, class Add>
[[gnu::always_inline]] inline auto sum_in_order(std::integer_sequence<int>, const At& at,
                                                const Add&) {
  return at(std::integral_constant<int, first>{});
}
template <int first, int apart, int... rest, class At, class Add>
[[gnu::always_inline]] inline auto sum_in_order(std::integer_sequence<int, apart, rest...>,
                                                const At& at, const Add& add) {
  constexpr std::integer_sequence<int, rest...> halves;
  auto sum = sum_in_order<first>(halves, at, add);
  add(sum, sum_in_order<first + apart>(halves, at, add));
  return sum;
}

/// Scores of 16 queries with `positions` positions, as `scores` has them. Only a zero may have
/// another sign, which no weight depends on.
/// q: [padded_dim, 16]; k: [positions, padded_dim]; out: [positions], `stride` floats apart.
template <int vectors, int positions>
void row_scores(const float* q, const float* k, uint32_t padded_dim, float* out, size_t stride) {
  struct several {
    vec of[positions];
  };
  const size_t n = vectors != 0 ? vectors : padded_dim / 16;
  const auto products = [&](auto lane) __attribute__((always_inline)) {
    constexpr size_t first = decltype(lane)::value;
    several sum;
    const auto x = lanes::load(q + first * lane_queries);
    unroll<positions>(
        LAMELLA_UNROLLED(i) { sum.of[i] = lanes::mul(x, lanes::set(k[i * n * 16 + first])); });
    const auto multiply = [&](size_t j) __attribute__((always_inline)) {
      const auto y = lanes::load(q + (j * 16 + first) * lane_queries);
      unroll<positions>(LAMELLA_UNROLLED(i) {
        sum.of[i] = lanes::fma(y, lanes::set(k[(i * n + j) * 16 + first]), sum.of[i]);
      });
    };
    if constexpr (vectors != 0)
      unroll<vectors - 1>(LAMELLA_UNROLLED(j) { multiply(j + 1); });
    else
      for (size_t j = 1; j < n; ++j) multiply(j);
    return sum;
  };
  const auto add = [](several & a, const several& b) __attribute__((always_inline)) {
    unroll<positions>(LAMELLA_UNROLLED(i) { a.of[i] = lanes::add(a.of[i], b.of[i]); });
  };
  const several sum = sum_in_order<0>(lanes::order_of_sums{}, products, add);
  unroll<positions>(LAMELLA_UNROLLED(i) { lanes::store(out + i * stride, sum.of[i]); });
}

/// Turns the scores of 16 queries with the positions of a tile, `stride` floats apart, into
/// weights, by the running maximum. A query that sees nothing of the tile, whose scores are
/// `no_score`, keeps what it has.
void weigh(float* scores, size_t stride, float* maxima, float* weights, float* factors) {
  const auto before = lanes::load(maxima);
  auto highest = before;
  for (uint32_t i = 0; i < tile_positions; ++i)
    highest = lanes::max(highest, lanes::load(scores + i * stride));
  lanes::store(maxima, highest);
  // Without any position yet, the difference to this one is -infinity, not NaN.
  highest = lanes::max(lanes::set(std::numeric_limits<float>::lowest()), highest);
  const auto factor = exp_lanes(lanes::sub(before, highest));
  lanes::store(factors, factor);
  for (uint32_t i = 0; i < tile_positions; ++i)
    lanes::store(scores + i * stride,
                 exp_lanes(lanes::sub(lanes::load(scores + i * stride), highest)));
  const auto sum = sum_in_order<0>(
      lanes::order_of_sum{}, [&](auto i) { return lanes::load(scores + i * stride); },
      [](vec& a, vec b) { a = lanes::add(a, b); });
  lanes::store(weights, lanes::add(lanes::mul(lanes::load(weights), factor), sum));
}

/// Memory of an item.
struct rows_room {
  size_t stride; ///< queries at once: a multiple of 16
  float* q;      ///< of rows_at_once after another: [stride / 16, padded_dim, 16]
  float* merged; ///< states of all queries
  float* sums;   ///< states of those at once in a chunk; maximum and weight come at its end
  float* scores; ///< [16, stride]: then weights
  float *maxima, *weights, *factors; ///< [stride]
  float* chunk;                      ///< widened tiles

  rows_room(const attention_shape& shape, size_t rows, float* room)
      : stride{size_t{rows_at_once} * shape.group}, q{room},
        merged{q + blocks(rows) * stride * shape.padded_dim}, sums{merged
                                                                   + rows * shape.group
                                                                         * shape.state_stride},
        scores{sums + stride * shape.state_stride}, maxima{scores + tile_positions * stride},
        weights{maxima + stride}, factors{weights + stride}, chunk{factors + stride} {}

  static size_t floats(const attention_shape& shape, size_t rows) {
    return blocks(rows) * rows_at_once * shape.group * shape.padded_dim
           + rows * shape.group * shape.state_stride
           + size_t{rows_at_once} * shape.group * (shape.state_stride + tile_positions + 3)
           + chunk_positions / tile_positions * widened_tile::floats(shape);
  }
  static size_t blocks(size_t rows) { return (rows + rows_at_once - 1) / rows_at_once; }
};

/// Queries of consecutive rows over one tile: those of later rows see all of it, some rows may see
/// a part, earlier rows nothing.
template <int vectors>
void attend_rows_tile(const attention_shape& shape, const row_item& item, const float* q,
                      const row_tile& tile, const rows_room& room) {
  const auto own = item.span->first_position + item.first_row; // position of the first row
  const auto end = tile.position + tile.count;
  // Rows from `some` on see something, from `all` on everything.
  const uint32_t some = own > tile.position ? 0 : tile.position + 1 - own;
  const uint32_t all = own >= end ? 0 : end - own < item.rows ? end - own : item.rows;
  const auto first = size_t{some} * shape.group, last = size_t{item.rows} * shape.group;

  constexpr int positions = lanes::row_positions;
  for (auto i = first / lane_queries * lane_queries; i < last; i += lane_queries)
    for (uint32_t p = 0; p < tile_positions; p += positions)
      row_scores<vectors, positions>(q + i * shape.padded_dim,
                                     tile.k + size_t{p} * shape.padded_dim, shape.padded_dim,
                                     room.scores + p * room.stride + i, room.stride);
  for (uint32_t row = 0; row < all; ++row)
    for (auto p = row < some ? 0 : own + row - tile.position; p < tile_positions; ++p)
      for (uint32_t g = 0; g < shape.group; ++g)
        room.scores[p * room.stride + row * shape.group + g] = no_score;
  for (auto p = tile.count; p < tile_positions; ++p)
    for (auto i = size_t{all} * shape.group; i < last; ++i)
      room.scores[p * room.stride + i] = no_score;
  for (auto i = first / lane_queries * lane_queries; i < last; i += lane_queries)
    weigh(room.scores + i, room.stride, room.maxima + i, room.weights + i, room.factors + i);

  const query_block block{nullptr, room.sums, 0, shape.state_stride, shape.padded_dim};
  const auto add = [&](size_t from, size_t to, uint32_t count) {
    const auto values = [&](auto queries, size_t i) {
      add_values<half_type::f32, vectors, decltype(queries)::value>(
          block, i, tile.values, count, {room.scores + i, 1, room.stride, room.factors + i});
    };
    for (; from + lanes::queries <= to; from += lanes::queries)
      values(std::integral_constant<int, lanes::queries>{}, from);
    if constexpr (lanes::queries > 1)
      with_constant<1, lanes::queries - 1>(static_cast<int>(to - from),
                                           [&](auto rest) { values(rest, from); });
  };
  for (auto row = some; row < all; ++row)
    add(size_t{row} * shape.group, size_t{row + 1} * shape.group, own + row - tile.position);
  add(size_t{all} * shape.group, last, tile.count);
}

/// The tiles of positions [chunk, chunk_end), which lie in room.chunk, for a few rows: their states
/// are merged into those of earlier chunks.
template <int vectors>
void attend_rows_chunk(const attention_shape& shape, const row_item& item, const float* q,
                       float* merged, const rows_room& room, uint32_t chunk, uint32_t chunk_end) {
  auto queries = item.rows * shape.group;
  auto first_position = item.span->first_position + item.first_row;
  auto end = first_position + item.rows - 1; // the last row's own position is not an earlier one
  if (chunk >= end) return;
  for (uint32_t i = 0; i < queries; ++i)
    clear_state(room.sums + i * shape.state_stride, shape.padded_dim);
  for (size_t i = 0; i < room.stride; i += lane_queries) {
    lanes::store(room.maxima + i, lanes::set(no_score));
    lanes::store(room.weights + i, lanes::zero());
  }
  widened_tile tile{room.chunk, {}};
  for (auto at = chunk; at < chunk_end && at < end; at += tile_positions) {
    auto n = chunk_end - at < tile_positions ? chunk_end - at : tile_positions;
    attend_rows_tile<vectors>(shape, item, q, {tile.data, tile.filled(shape, n), at, n}, room);
    tile.data += widened_tile::floats(shape);
  }
  for (uint32_t i = 0; i < queries; ++i) {
    if (first_position + i / shape.group <= chunk) continue; // nothing seen in this chunk
    auto* from = room.sums + i * shape.state_stride;
    from[shape.padded_dim] = room.maxima[i];
    from[shape.padded_dim + 1] = room.weights[i];
    auto* into = merged + i * shape.state_stride;
    if (chunk == 0)
      __builtin_memcpy(into, from, shape.state_stride * 4);
    else
      merge_state(into, from, shape.padded_dim);
  }
}

/// The queries of some rows, each vector of 16 of them: [.. / 16, padded_dim, 16]. Lanes without a
/// query are 0. `room`: rows of padded_dim.
void load_lanes(const attention_args& args, const attention_shape& shape, const row_item& item,
                float* room, float* out) {
  const auto queries = item.rows * shape.group;
  load_queries(args, shape, item.head, item.span->first_row + item.first_row, 0, queries, room);
  for (uint32_t first = 0; first < queries; first += lane_queries) {
    const auto count = queries - first < lane_queries ? queries - first : lane_queries;
    for (uint32_t j = 0; j < shape.padded_dim; ++j, out += lane_queries) {
      lanes::store(out, lanes::zero());
      for (uint32_t i = 0; i < count; ++i) out[i] = room[size_t{first + i} * shape.padded_dim + j];
    }
  }
}

/// Calls f(rows, index) for each rows_at_once rows of an item.
template <class F> void for_rows_at_once(const row_item& item, F&& f) {
  for (uint32_t row = 0; row < item.rows; row += rows_at_once) {
    auto some = item;
    some.first_row += row;
    some.rows = item.rows - row < rows_at_once ? item.rows - row : rows_at_once;
    f(some, row);
  }
}

template <int vectors>
void attend_rows(const attention_args& args, const attention_shape& shape, const row_item& item,
                 float* floats) {
  auto queries = item.rows * shape.group;
  auto end = item.span->first_position + item.first_row + item.rows - 1;
  const rows_room room{shape, item.rows, floats};
  for_rows_at_once(item, [&](const row_item& some, uint32_t row) {
    load_lanes(args, shape, some, room.sums, room.q + size_t{row} * shape.group * shape.padded_dim);
  });
  for (uint32_t i = 0; i < queries; ++i)
    clear_state(room.merged + i * shape.state_stride, shape.padded_dim);

  slot_cursor slots{args, *item.span};
  for (uint32_t chunk = 0; chunk < end; chunk += chunk_positions) {
    auto chunk_end = end - chunk < chunk_positions ? end : chunk + chunk_positions;
    widened_tile tile{room.chunk, {}};
    for (auto at = chunk; at < chunk_end; at += tile_positions) {
      auto n = chunk_end - at < tile_positions ? chunk_end - at : tile_positions;
      std::byte* rows[tile_positions];
      slots.take(n, rows);
      tile.fill(args, shape, rows, n, item.head);
      // Scores beyond the count are not used, but must be numbers.
      for (auto i = n * shape.padded_dim; i < tile_positions * shape.padded_dim; ++i)
        tile.data[i] = 0;
      tile.data += widened_tile::floats(shape);
    }
    for_rows_at_once(item, [&](const row_item& some, uint32_t row) {
      const auto first = size_t{row} * shape.group;
      attend_rows_chunk<vectors>(shape, some, room.q + first * shape.padded_dim,
                                 room.merged + first * shape.state_stride, room, chunk, chunk_end);
    });
  }
  for (uint32_t i = 0; i < queries; ++i)
    keep_state(shape, room.merged + i * shape.state_stride,
               kept_state(args, shape, item.span->first_row + item.first_row + i / shape.group,
                          item.head, i % shape.group));
}

/// Rows of an item: many, which read and widen K and V once, but so few that each thread has some
/// items and their queries stay in the second level of the cache.
uint32_t rows_of_item(const attention_args& args, const attention_shape& shape, unsigned threads) {
  size_t rows = 0;
  for (const auto& span : args.spans)
    if (span.rows > 1) rows += span.rows;
  const size_t even = rows * shape.heads / (size_t{threads} * 4), fitting = 384 / shape.group;
  const auto most = even < fitting ? even : fitting;
  const auto blocks = static_cast<uint32_t>(most / rows_at_once);
  return rows_at_once * (blocks < 1 ? 1 : blocks > 8 ? 8 : blocks);
}

} // namespace
} // namespace lamella::gpu
