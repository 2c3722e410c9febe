/// What the steps of attention share: queries into fp32, slots into rows, merging of states.
/// Included after `lanes`.
#pragma once

#include "gpu/kernels/attention_tile.hpp"
#include "gpu/kernels/rooms.hpp"
#include "gpu/kernels/rows.hpp"

namespace lamella::gpu {
namespace {

/// Sizes that follow from the arguments of a call.
struct attention_shape {
  explicit attention_shape(const attention_args& args)
      : heads{args.kv.kv_heads}, group{args.group}, dim{args.kv.dim}, padded_dim{(args.kv.dim + 15)
                                                                                 / 16 * 16},
        state_stride{size_t{padded_dim} + 16}, head_bytes{args.kv.head_bytes()} {}

  uint32_t heads, group, dim, padded_dim;
  size_t state_stride; ///< floats of one query's padded state
  size_t head_bytes;   ///< in the cache
};

/// Widens and scales `count` queries, from the `first` on of those that follow (head, row) in
/// memory; rotates them where K is.
void load_queries(const attention_args& args, const attention_shape& shape, uint32_t head,
                  uint32_t row, uint32_t first, uint32_t count, float* out) {
  const auto* q =
      args.q
      + ((size_t{head} * args.rows + row) * shape.group + first) * shape.dim * bytes_of(args.wire);
  for (uint32_t i = 0; i < count; ++i, out += shape.padded_dim) {
    widen(q + size_t{i} * shape.dim * bytes_of(args.wire), shape.dim, args.wire, out);
    if (args.kv.type == half_type::q4) q4_rotate(out, shape.dim, q4_block(shape.dim));
    for (auto j = shape.dim; j < shape.padded_dim; ++j) out[j] = 0;
    for (uint32_t j = 0; j < shape.padded_dim; j += 16)
      lanes::store(out + j, lanes::mul(lanes::load(out + j), lanes::set(args.scale)));
  }
}

/// Walks the slots of a span in order of position.
class slot_cursor {
public:
  slot_cursor(const attention_args& args, const attention_span& span)
      : run_{args.runs.data() + span.first_run}, kv_{&args.kv} {}

  void skip(uint32_t positions) {
    while (positions != 0) {
      auto step = run_->length - used_;
      if (step > positions) step = positions;
      positions -= step;
      advance(step);
    }
  }

  /// Rows of the next `count` positions.
  void take(uint32_t count, std::byte** rows) {
    const auto stride = kv_->row_bytes();
    while (count != 0) {
      auto step = run_->length - used_;
      if (step > count) step = count;
      auto* row = kv_->rows + (size_t{run_->first} + used_) * stride;
      for (uint32_t i = 0; i < step; ++i, row += stride) *rows++ = row;
      count -= step;
      advance(step);
    }
  }

private:
  void advance(uint32_t step) {
    used_ += step;
    if (used_ == run_->length) {
      ++run_;
      used_ = 0;
    }
  }

  const slot_run* run_;
  uint32_t used_ = 0;
  const kv_layer* kv_;
};

/// Merges the state of a later chunk into that of the earlier ones.
void merge_state(float* into, const float* later, uint32_t padded_dim) {
  float a = into[padded_dim], b = later[padded_dim];
  float highest = a > b ? a : b;
  float keep = exp_one(a - highest), take = exp_one(b - highest);
  for (uint32_t j = 0; j < padded_dim; j += 16)
    lanes::store(into + j, lanes::fma(lanes::load(later + j), lanes::set(take),
                                      lanes::mul(lanes::load(into + j), lanes::set(keep))));
  into[padded_dim] = highest;
  into[padded_dim + 1] = into[padded_dim + 1] * keep + later[padded_dim + 1] * take;
}

/// Where the state of a query waits for attend_new.
float* kept_state(const attention_args& args, const attention_shape& shape, uint32_t row,
                  uint32_t head, uint32_t g) {
  return args.state
         + ((size_t{row} * shape.heads + head) * shape.group + g) * (size_t{shape.dim} + 2);
}

void keep_state(const attention_shape& shape, const float* padded, float* kept) {
  __builtin_memcpy(kept, padded, size_t{shape.dim} * 4);
  kept[shape.dim] = padded[shape.padded_dim];
  kept[shape.dim + 1] = padded[shape.padded_dim + 1];
}

/// A tile's K and V of one head as fp32 rows of padded_dim, for queries that read them many times
/// and for dims that do not fill vectors. `rows` then points into the copy.
struct widened_tile {
  float* data; ///< [2, 16, padded_dim]
  const std::byte* rows[tile_positions];

  tile_source fill(const attention_args& args, const attention_shape& shape,
                   const std::byte* const* from, uint32_t count, uint32_t head) {
    auto half = size_t{tile_positions} * shape.padded_dim;
    for (uint32_t i = 0; i < count; ++i) {
      float* k = data + size_t{i} * shape.padded_dim;
      widen(from[i] + args.kv.k_offset(head), shape.dim, args.kv.type, k);
      widen(from[i] + args.kv.v_offset(head), shape.dim, args.kv.type, k + half);
      for (auto j = shape.dim; j < shape.padded_dim; ++j) k[j] = k[half + j] = 0;
    }
    return filled(shape, count);
  }

  /// What `fill` has put into `data` before.
  tile_source filled(const attention_shape& shape, uint32_t count) {
    for (uint32_t i = 0; i < tile_positions; ++i) {
      // Rows beyond count repeat the last one: their scores are not used, but must be numbers.
      auto at = i < count ? i : count - 1;
      rows[i] = reinterpret_cast<const std::byte*>(data + size_t{at} * shape.padded_dim);
    }
    return {rows, 0, size_t{tile_positions} * shape.padded_dim * 4, 0};
  }

  static size_t floats(const attention_shape& shape) {
    return size_t{2} * tile_positions * shape.padded_dim;
  }
};

/// Calls f with half_type and padded_dim / 16 (0: any) as template arguments.
template <class F> void with_shape(half_type type, uint32_t dim, F&& f) {
  auto by_dim = [&]<half_type t>() {
    switch (dim) {
    case 64:
      return f.template operator()<t, 4>();
    case 128:
      return f.template operator()<t, 8>();
    default:
      return f.template operator()<t, 0>();
    }
  };
  if (type == half_type::f16)
    by_dim.template operator()<half_type::f16>();
  else if (type == half_type::bf16)
    by_dim.template operator()<half_type::bf16>();
  else if (type == half_type::q8)
    by_dim.template operator()<half_type::q8>();
  else if (type == half_type::q4)
    by_dim.template operator()<half_type::q4>();
  else
    by_dim.template operator()<half_type::f32>();
}

} // namespace
} // namespace lamella::gpu
