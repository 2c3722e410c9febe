/// matmul of the sets with tiles: quantised weights with 16 rows and more, and bf16 weights, go
/// over `tile_unit`. Included after `lanes` and `tile_unit`.
#pragma once

#include "gpu/kernels/tiles/bf16_weights.hpp"
#include "gpu/kernels/tiles/quantised_weights.hpp"

#include <new>

namespace lamella::gpu {
namespace {

/// The parts of a call, by what computes them.
struct sorted_parts {
  std::span<const matmul_part> quantised, bf16, others;
  bool half_blocks = false; ///< some quantised weights have scales of 16 elements

  /// Few rows of quantised weights are for the others: a tile would be mostly empty.
  sorted_parts(const matmul_args& args, arena& scratch) {
    auto* sorted = scratch.allocate<matmul_part>(args.parts.size());
    size_t count = 0;
    const auto take = [&](auto&& wanted) {
      const auto first = count;
      for (const auto& part : args.parts)
        if (wanted(part.weight.type)) new (sorted + count++) matmul_part{part};
      return std::span<const matmul_part>{sorted + first, count - first};
    };
    const auto on_tiles = [&](tensor_type type) {
      return !is_plain(type) && args.rows >= tile_rows;
    };
    quantised = take(on_tiles);
    bf16 = take([](tensor_type type) { return type == tensor_type::bf16; });
    others = take([&](tensor_type type) { return !on_tiles(type) && type != tensor_type::bf16; });
    for (const auto& part : quantised)
      half_blocks = half_blocks || form_of(part.weight.type).scales == 2;
  }
};

/// `without_tiles`: the set with the same lanes.
template <const operators* (*without_tiles)()>
void tile_matmul(const matmul_args& args, kernel_context context) {
  if (args.rows == 0 || args.parts.empty()) return;
  arena::scope scope{context.scratch};
  const sorted_parts parts{args, context.scratch};
  if (!parts.others.empty()) without_tiles()->matmul({args.x, args.rows, parts.others}, context);
  if (!parts.quantised.empty()) quantised_matmul(args, parts.quantised, parts.half_blocks, context);
  if (!parts.bf16.empty()) bf16_matmul(args, parts.bf16, context);
}

} // namespace
} // namespace lamella::gpu
