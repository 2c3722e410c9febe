/// Rows of a product as int8, quantised once for all its parts. Included after `lanes`.
#pragma once

#include "gpu/kernels/operators.hpp"

#include <bit>
#include <limits>

namespace lamella::gpu {
namespace {

/// What a block of 32 activations is multiplied with after the integer sum.
struct block_scale {
  float d;     ///< value = d * q
  float d_sum; ///< d * sum of q
  int32_t minus_8_sum, minus_128_sum;
};

/// The sums of the halves of a block, which have its d.
struct half_sums {
  float d_sum[2];
  int32_t minus_32_sum[2];
};

/// Rows of int8 activations.
struct quantised_rows {
  const int8_t* q;          ///< [M, K]
  const block_scale* scale; ///< [M, K / 32]
  const half_sums* halves;  ///< [M, K / 32]; null where no weight has scales of 16 elements
  uint32_t inputs;

  quantised_rows from(size_t row) const {
    const auto blocks = row * (inputs / 32);
    return {q + row * inputs, scale + blocks, halves == nullptr ? nullptr : halves + blocks,
            inputs};
  }
};

/// One row to int8. A block with NaN or infinity gets a scale that is none, so that it stays
/// visible.
void quantise_row(const float* x, uint32_t inputs, int8_t* q, block_scale* scale) {
  for (uint32_t b = 0; b < inputs / 32; ++b, x += 32, q += 32) {
    auto highest = std::bit_cast<float>(lanes::absolute_maximum_bits(x));
    if (!(highest < std::numeric_limits<float>::infinity())) {
      constexpr float none = std::numeric_limits<float>::quiet_NaN();
      __builtin_memset(q, 0, 32);
      scale[b] = {none, none, 0, 0};
      continue;
    }
    // Below this 127 / highest would overflow; such a block is zero.
    bool tiny = highest < 1e-30f;
    auto sum = lanes::quantise(x, tiny ? 0.0f : 127.0f / highest, q);
    float d = tiny ? 0.0f : highest / 127.0f;
    scale[b] = {d, d * static_cast<float>(sum), -8 * sum, -128 * sum};
  }
}

/// The sums of the halves of a row's blocks.
void sum_halves(const int8_t* q, const block_scale* scale, uint32_t blocks, half_sums* halves) {
  for (uint32_t b = 0; b < blocks; ++b)
    for (int h = 0; h < 2; ++h, q += 16) {
      int32_t sum = 0;
      for (int i = 0; i < 16; ++i) sum += q[i];
      halves[b].d_sum[h] = scale[b].d * static_cast<float>(sum);
      halves[b].minus_32_sum[h] = -32 * sum;
    }
}

inline quantised_rows quantise(const matmul_args& args, uint32_t inputs, bool with_halves,
                               kernel_context context) {
  constexpr uint32_t rows_per_piece = 8;
  auto blocks = inputs / 32;
  auto* q = context.scratch.allocate<int8_t>(size_t{args.rows} * inputs);
  auto* scale = context.scratch.allocate<block_scale>(size_t{args.rows} * blocks);
  auto* halves =
      with_halves ? context.scratch.allocate<half_sums>(size_t{args.rows} * blocks) : nullptr;
  auto items = (args.rows + rows_per_piece - 1) / rows_per_piece;
  context.workers.for_each(items, [&](size_t item) {
    auto first = static_cast<uint32_t>(item) * rows_per_piece;
    for (size_t m = first; m < args.rows && m < first + rows_per_piece; ++m) {
      quantise_row(args.x + m * inputs, inputs, q + m * inputs, scale + m * blocks);
      if (with_halves) sum_halves(q + m * inputs, scale + m * blocks, blocks, halves + m * blocks);
    }
  });
  return {q, scale, halves, inputs};
}

} // namespace
} // namespace lamella::gpu
