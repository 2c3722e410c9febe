/// Attention on tiles of spans of many rows. Each block of rows exchanges K of a chunk once, and
/// its queries are the left matrix. Included after `lanes` and `tile_unit`.
#pragma once

#include "gpu/kernels/attention_rows.hpp"
#include "gpu/kernels/tiles/sources.hpp"

namespace lamella::gpu {
namespace {

/// A block of rows of a span, one head.
template <int vectors, bool exact> class rows_on_tiles {
public:
  rows_on_tiles(const attention_shape& shape, uint32_t rows, float* room)
      : shape_{shape}, head_{shape}, taker_{room}, queries_{taker_.bytes(groups_of(rows)
                                                                         * head_.query_bytes())},
        merged_{taker_.floats(size_t{rows} * shape.group * shape.state_stride)},
        keys_{taker_.bytes(chunk_positions / 16 * head_.key_bytes())},
        values_{taker_.bytes(size_t{chunk_blocks} * head_.value_tiles * tile_bytes)},
        scores_{taker_.floats(queries_at_once * score_lines::stride)}, sums_{taker_.floats(
                                                                           queries_at_once
                                                                           * shape.state_stride)},
        one_{taker_.bytes(head_.key_bytes())}, copies_{taker_.bytes(rows_of::bytes(shape))} {}

  static constexpr uint32_t queries_at_once = 2 * tile_queries;

  static size_t floats(const attention_shape& shape, uint32_t rows) {
    return rows_on_tiles{shape, rows, nullptr}.taker_.taken_floats();
  }

  void attend(const attention_args& args, const row_item& item) {
    const auto queries = item.rows * shape_.group;
    const auto end = item.span->first_position + item.first_row + item.rows - 1;
    for (uint32_t first = 0; first < queries; first += tile_queries) {
      const auto count = queries - first < tile_queries ? queries - first : tile_queries;
      load_queries(args, shape_, item.head, item.span->first_row + item.first_row, first, count,
                   sums_);
      pack_queries(sums_, count, shape_.padded_dim, query_tiles(first));
    }
    for (uint32_t i = 0; i < queries; ++i)
      clear_state(merged_ + i * shape_.state_stride, shape_.padded_dim);

    slot_cursor slots{args, *item.span};
    const tile_unit::halves unit{16};
    for (uint32_t chunk = 0; chunk < end; chunk += chunk_positions) {
      const auto count = end - chunk < chunk_positions ? end - chunk : chunk_positions;
      std::byte* rows[chunk_positions];
      slots.take(count, rows);
      pack(args, item.head, rows, count);
      for (uint32_t first = 0; first < queries; first += queries_at_once)
        if (queries - first > tile_queries)
          attend_chunk<2>(unit, item, first, chunk);
        else
          attend_chunk<1>(unit, item, first, chunk);
    }
    for (uint32_t i = 0; i < queries; ++i)
      keep_state(shape_, merged_ + i * shape_.state_stride,
                 kept_state(args, shape_, item.span->first_row + item.first_row + i / shape_.group,
                            item.head, i % shape_.group));
  }

private:
  using rows_of = whole_rows<exact>;

  size_t groups_of(uint32_t rows) const {
    return (size_t{rows} * shape_.group + tile_queries - 1) / tile_queries;
  }
  std::byte* query_tiles(uint32_t first) {
    return queries_ + first / tile_queries * head_.query_bytes();
  }
  std::byte* value_tiles(uint32_t block) {
    return values_ + size_t{block} * head_.value_tiles * tile_bytes;
  }

  /// K and V of a chunk as right matrices.
  void pack(const attention_args& args, uint32_t head, const std::byte* const* rows,
            uint32_t count) {
    const rows_of k{shape_, rows, args.kv.k_offset(head), count, copies_, pointers_};
    for (uint32_t at = 0; at < count; at += 16) {
      pack_keys<vectors>(k.rows + at, k.offset, count - at < 16 ? count - at : 16,
                         shape_.padded_dim, one_);
      transpose_tiles(one_, head_.blocks, keys_ + at / 16 * head_.key_bytes());
    }
    const rows_of v{shape_, rows, args.kv.v_offset(head), count, copies_, pointers_};
    for (uint32_t at = 0; at < count; at += block_positions)
      pack_values<vectors>(v.rows + at, v.offset,
                           count - at < block_positions ? count - at : block_positions, 0,
                           head_.value_tiles, value_tiles(at / block_positions));
  }

  /// `groups` times 16 queries over one chunk: their states are merged into those of earlier
  /// chunks.
  template <int groups>
  void attend_chunk(const tile_unit::halves& unit, const row_item& item, uint32_t first,
                    uint32_t chunk) {
    const auto own = item.span->first_position + item.first_row;
    const auto queries = item.rows * shape_.group;
    const auto last =
        first + groups * tile_queries < queries ? first + groups * tile_queries : queries;
    const auto seen = [&](uint32_t query) {
      const auto position = own + query / shape_.group;
      return position <= chunk                    ? 0
             : position - chunk < chunk_positions ? position - chunk
                                                  : chunk_positions;
    };
    const auto most = seen(last - 1);
    if (most == 0) return;
    score<groups>(unit, first, (most + 15) / 16);
    const auto state = [&](uint32_t query) {
      return sums_ + (query - first) * shape_.state_stride;
    };
    const auto blocks = (most + block_positions - 1) / block_positions;
    for (auto i = first; i < last; ++i)
      if (seen(i) != 0)
        weigh_line(scores_.line(i - first), seen(i), blocks, state(i) + shape_.padded_dim);
    add_values<groups>(unit, blocks);
    for (auto i = first; i < last; ++i) {
      if (seen(i) == 0) continue;
      auto* into = merged_ + i * shape_.state_stride;
      if (chunk == 0)
        __builtin_memcpy(into, state(i), shape_.state_stride * 4);
      else
        merge_state(into, state(i), shape_.padded_dim);
    }
  }

  /// Two tiles of the right side at once, which stay in registers for all `groups`.
  template <int groups> void score(const tile_unit::halves& unit, uint32_t first, uint32_t tiles) {
    const tile_side queries{query_tiles(first), head_.query_bytes(), split_bytes};
    in_pairs(tiles, [&](auto n, uint32_t t) {
      multiply_tiles<score_step<false>, groups, decltype(n)::value>(
          unit, head_.blocks, queries,
          {keys_ + t * head_.key_bytes(), head_.key_bytes(), tile_bytes}, scores_.first + t * 16,
          tile_queries * score_lines::stride, 16, score_lines::stride);
    });
  }

  template <int groups> void add_values(const tile_unit::halves& unit, uint32_t blocks) {
    in_pairs(head_.value_tiles, [&](auto n, uint32_t t) {
      multiply_tiles<value_step, groups, decltype(n)::value>(
          unit, blocks, scores_.weights(0),
          {values_ + t * tile_bytes, tile_bytes, head_.value_tiles * tile_bytes}, sums_ + t * 16,
          tile_queries * shape_.state_stride, 16, shape_.state_stride);
    });
  }

  template <class F> static void in_pairs(uint32_t count, F&& f) {
    uint32_t i = 0;
    for (; i + 2 <= count; i += 2) f(std::integral_constant<int, 2>{}, i);
    if (i < count) f(std::integral_constant<int, 1>{}, i);
  }

  const attention_shape& shape_;
  tiled_head head_;
  piece_taker taker_;
  std::byte* queries_; ///< [groups of 16] tiles
  float* merged_;      ///< states of all queries
  std::byte* keys_;    ///< [16] tiles of a chunk, exchanged
  std::byte* values_;  ///< [8 blocks, value_tiles]
  score_lines scores_; ///< of queries_at_once
  float* sums_;        ///< states of queries_at_once in a chunk
  std::byte* one_;
  std::byte* copies_;
  const std::byte* pointers_[chunk_positions];
};

} // namespace
} // namespace lamella::gpu
