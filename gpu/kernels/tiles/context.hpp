/// Attention on tiles of spans of one row. K is the left matrix: its rows are as they lie in the
/// cache, and the few queries, exchanged once, are the right one. Included after `lanes` and
/// `tile_unit`.
#pragma once

#include "gpu/kernels/attention.hpp"
#include "gpu/kernels/tiles/sources.hpp"

namespace lamella::gpu {
namespace {

/// A span of one row: some chunks of its context, all heads.
template <int vectors, bool exact> class context_on_tiles {
public:
  context_on_tiles(const attention_args& args, const attention_shape& shape, float* room)
      : args_{args}, shape_{shape}, head_{shape}, groups_{(shape.group + tile_queries - 1)
                                                          / tile_queries},
        taker_{room}, queries_{taker_.bytes(shape.heads * groups_ * head_.query_bytes())},
        scores_{taker_.floats(shape.heads * groups_ * tile_queries * score_lines::stride)},
        products_{taker_.floats(tiles_at_once * groups_ * 256)},
        keys_{taker_.bytes(tiles_at_once * head_.key_bytes())}, values_{taker_.bytes(2 * 4
                                                                                     * tile_bytes)},
        sums_{taker_.floats(tile_queries * (shape.padded_dim < 64 ? 64 : shape.padded_dim))},
        copies_{taker_.bytes(rows_of::bytes(shape))} {}

  static size_t floats(const attention_args& args, const attention_shape& shape) {
    return context_on_tiles{args, shape, nullptr}.taker_.taken_floats();
  }

  void attend(const context_item& item) {
    load(item.span->first_row);
    std::byte* taken[chunks_per_item * chunk_positions];
    const auto count = item.last - item.first;
    auto slots = item.slots;
    slots.take(count, taken);
    const std::byte* const* rows = taken;
    auto* states = item.states;
    for (uint32_t at = 0; at < count; at += chunk_positions, rows += chunk_positions) {
      const auto left = count - at, some = left < chunk_positions ? left : chunk_positions;
      score(rows, some);
      add_values(rows, some, left - some, states);
      states += size_t{shape_.heads} * shape_.group * shape_.state_stride;
    }
  }

private:
  using rows_of = whole_rows<exact>;
  static constexpr uint32_t tiles_at_once = 4, at_once = tiles_at_once * 16; ///< positions

  std::byte* query_tiles(uint32_t head, uint32_t group) {
    return queries_ + (size_t{head} * groups_ + group) * head_.query_bytes();
  }
  uint32_t queries_of(uint32_t group) const {
    const auto left = shape_.group - group * tile_queries;
    return left < tile_queries ? left : tile_queries;
  }

  /// The queries of a row, as columns.
  void load(uint32_t row) {
    for (uint32_t h = 0; h < shape_.heads; ++h)
      for (uint32_t g = 0; g < groups_; ++g) {
        const auto count = queries_of(g);
        // Sums and keys are not in use yet, and keys have room for four tiles of each block.
        load_queries(args_, shape_, h, row, g * tile_queries, count, sums_);
        pack_queries(sums_, count, shape_.padded_dim, keys_);
        transpose_tiles(keys_, 2 * head_.blocks, query_tiles(h, g));
      }
  }

  void score(const std::byte* const* rows, uint32_t count) {
    const tile_unit::halves unit{16};
    for (uint32_t at = 0; at < count; at += at_once) {
      const auto some = at_most(count - at, at_once), tiles = (some + 15) / 16;
      for (uint32_t h = 0; h < shape_.heads; ++h) {
        const rows_of k{shape_, rows + at, args_.kv.k_offset(h), some, copies_, pointers_};
        const auto next = at + some < count
                              ? ahead(rows + at + some, count - at - some, args_.kv.k_offset(h))
                              : ahead(rows, count, args_.kv.v_offset(h));
        // Tile by tile: one is packed while the one before is multiplied.
        for (uint32_t t = 0; t < tiles; ++t) {
          auto* keys = keys_ + t * head_.key_bytes();
          pack_keys<vectors>(k.rows + t * 16, k.offset, at_most(some - t * 16, 16),
                             shape_.padded_dim, keys, next.from(t * 16));
          for (uint32_t g = 0; g < groups_; ++g)
            multiply_tiles<score_step<true>, 1, 1>(unit, head_.blocks, {keys, 0, tile_bytes},
                                                   {query_tiles(h, g), 0, split_bytes},
                                                   products_ + (t * groups_ + g) * 256, 0, 0, 16);
        }
        for (uint32_t t = 0; t < tiles; ++t)
          for (uint32_t g = 0; g < groups_; ++g)
            lanes::transpose_first(products_ + (t * groups_ + g) * 256, queries_of(g),
                                   scores_.line(line_of(h, g)) + at + t * 16, score_lines::stride);
      }
    }
  }

  /// `more`: positions that follow in later chunks.
  void add_values(const std::byte* const* rows, uint32_t count, uint32_t more, float* states) {
    const auto blocks = (count + block_positions - 1) / block_positions;
    const tile_unit::halves unit{static_cast<int>(queries_of(0))};
    for (uint32_t h = 0; h < shape_.heads; ++h) {
      const rows_of v{shape_, rows, args_.kv.v_offset(h), count, copies_, pointers_};
      for (uint32_t g = 0; g < groups_; ++g) {
        const auto first = size_t{h} * shape_.group + size_t{g} * tile_queries;
        auto* state = states + first * shape_.state_stride;
        for (uint32_t i = 0; i < queries_of(g); ++i)
          weigh_line(scores_.line(line_of(h, g) + i), count, blocks,
                     state + i * shape_.state_stride + shape_.padded_dim);
        const auto weights = scores_.weights(line_of(h, g));
        for (uint32_t tile = 0; tile < head_.value_tiles; tile += 4) {
          const auto next =
              tile != 0 || g != 0 ? rows_ahead{} : ahead(rows + count, more, args_.kv.k_offset(h));
          with_constant<1, 4>(static_cast<int>(at_most(head_.value_tiles - tile, 4)), [&](auto n) {
            add_tiles<decltype(n)::value>(unit, v, count, tile, weights, next);
          });
          for (uint32_t i = 0; i < queries_of(g); ++i)
            for (uint32_t j = 0; j < 64 && tile * 16 + j < shape_.padded_dim; j += 16)
              lanes::store(state + i * shape_.state_stride + tile * 16 + j,
                           lanes::load(sums_ + i * 64 + j));
        }
      }
    }
  }

  /// `tiles` of the elements of V, from the `first` on. `later`: of the next chunk.
  template <int tiles>
  void add_tiles(const tile_unit::halves& unit, const rows_of& v, uint32_t count, uint32_t first,
                 const tile_side& weights, const rows_ahead& later) {
    clear_sums<tiles>(unit);
    for (uint32_t at = 0; at < count; at += block_positions) {
      const auto b = at / block_positions;
      const auto next = at + at_once < count
                            ? ahead(v.rows + at + at_once, count - at - at_once, v.offset)
                            : later.from(at + at_once - (count + 31) / 32 * 32);
      auto* packed = values_ + b % 2 * 4 * tile_bytes; // while the last one is multiplied
      pack_values<tiles>(v.rows + at, v.offset, at_most(count - at, block_positions), first, tiles,
                         packed, next);
      value_step::add<1, tiles>(unit, {weights.at(0, b), 0, 0, weights.stride},
                                {packed, tile_bytes, 0}, 0);
    }
    store_sums<1, tiles>(unit, sums_, 0, 16, 64);
  }

  rows_ahead ahead(const std::byte* const* rows, uint32_t count, size_t offset) const {
    return {rows, offset, at_most(count, at_once), static_cast<uint32_t>(shape_.head_bytes)};
  }
  uint32_t line_of(uint32_t head, uint32_t group) const {
    return (head * groups_ + group) * tile_queries;
  }
  static uint32_t at_most(uint32_t count, uint32_t most) { return count < most ? count : most; }

  const attention_args& args_;
  const attention_shape& shape_;
  tiled_head head_;
  uint32_t groups_; ///< of 16 queries of a head
  piece_taker taker_;
  std::byte* queries_; ///< [heads, groups] tiles
  score_lines scores_; ///< [heads, groups, 16]
  float* products_;    ///< [4 tiles, groups] of 16 positions x 16 queries
  std::byte* keys_;    ///< [4] tiles of positions
  std::byte* values_;  ///< [2 blocks, 4] tiles of elements
  float* sums_;        ///< [16, 64], or queries before the first product
  std::byte* copies_;
  const std::byte* pointers_[chunk_positions];
};

} // namespace
} // namespace lamella::gpu
