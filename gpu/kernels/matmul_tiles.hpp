/// The inner loops of matmul: a tile of rows x panels for each way weights are stored.
///
/// A row's arithmetic is the same in every tile shape, so results do not depend on which tile takes
/// it: per block an exact integer sum; fp32 across blocks in ascending order. Included after
/// `lanes`.
#pragma once

#include "gpu/kernels/panels.hpp"
#include "gpu/kernels/unroll.hpp"

namespace lamella::gpu {
namespace {

using model::tensor_type;
using vec = lanes::vec;

/// What a block of 32 activations is multiplied with after the integer sum.
struct block_scale {
  float d;     ///< value = d * q
  float d_sum; ///< d * sum of q
  int32_t minus_8_sum, minus_128_sum;
};

/// Rows of int8 activations.
struct quantised_rows {
  const int8_t* q;          ///< [M, K]
  const block_scale* scale; ///< [M, K / 32]
  uint32_t inputs;
};

/// Where a tile puts its results.
struct tile_output {
  float* out;
  size_t stride;
  uint32_t columns; ///< of the last panel that exist, <= 16

  template <int panels> [[gnu::always_inline]] void store(int row, int panel, vec v) const {
    float* p = out + row * stride + panel * panel_outputs;
    if (panel == panels - 1 && columns < panel_outputs)
      lanes::store_first(p, v, columns);
    else
      lanes::store(p, v);
  }
};

/// Asks for a block of a later group of panels, its scales included.
template <tensor_type type, int panels>
[[gnu::always_inline]] inline void fetch_block(const std::byte* values, size_t panel_stride) {
  unroll<panels>(LAMELLA_UNROLLED(p) {
    // The 64 bytes before the values are scales (or the end of the block before).
    for (size_t at = 0; at < block_value_bytes(type) + 64; at += 64)
      __builtin_prefetch(values + p * panel_stride + at - 64);
  });
}

/// `fetch`: distance to the weights to be asked for meanwhile, 0 for none.
template <tensor_type type, int rows, int panels>
void quantised_tile(const quantised_rows& x, const std::byte* panel, size_t fetch,
                    const tile_output& output) {
  constexpr bool nibbles = has_nibbles(type);
  const auto blocks = x.inputs / 32;
  const auto panel_stride = panel_bytes(type, x.inputs);
  vec total[rows][panels];
  unroll<rows>(LAMELLA_UNROLLED(m) {
    unroll<panels>(LAMELLA_UNROLLED(p) { total[m][p] = lanes::zero(); });
  });
  for (uint32_t b = 0; b < blocks; ++b) {
    const auto* values = panel + value_offset(type, b);
    const auto* scales = panel + scale_offset(type, b);
    if (fetch != 0) fetch_block<type, panels>(values + fetch, panel_stride);
    lanes::block_sums<nibbles> sums[rows][panels];
    unroll<rows>(LAMELLA_UNROLLED(m) {
      const auto& s = x.scale[m * blocks + b];
      auto bias = type == tensor_type::q4_0                          ? s.minus_8_sum
                  : type == tensor_type::q8_0 && lanes::raised_bytes ? s.minus_128_sum
                                                                     : 0;
      unroll<panels>(LAMELLA_UNROLLED(p) { sums[m][p] = lanes::start<nibbles>(bias); });
    });
    unroll<4>(LAMELLA_UNROLLED(j) {
      lanes::values low[panels], high[panels];
      unroll<panels>(LAMELLA_UNROLLED(p) {
        const auto* v = values + p * panel_stride;
        if constexpr (nibbles) {
          auto both = lanes::load_nibbles(v + j * 64);
          low[p] = lanes::low_nibbles(both);
          high[p] = lanes::high_nibbles(both);
        } else {
          low[p] = lanes::load_values(v + j * 128);
          high[p] = lanes::load_values(v + j * 128 + 64);
        }
      });
      unroll<rows>(LAMELLA_UNROLLED(m) {
        const auto* a = x.q + size_t{m} * x.inputs + b * 32 + j * 8;
        auto first = lanes::broadcast(a), second = lanes::broadcast(a + 4);
        unroll<panels>(LAMELLA_UNROLLED(p) {
          sums[m][p] = lanes::accumulate<nibbles>(sums[m][p], low[p], first);
          sums[m][p] = lanes::accumulate<nibbles>(sums[m][p], high[p], second);
        });
      });
    });
    unroll<panels>(LAMELLA_UNROLLED(p) {
      const auto* scale = scales + p * panel_stride;
      auto d = lanes::load_f16(scale);
      [[maybe_unused]] vec minimum;
      if constexpr (type == tensor_type::q4_1) minimum = lanes::load_f16(scale + 32);
      unroll<rows>(LAMELLA_UNROLLED(m) {
        const auto& s = x.scale[m * blocks + b];
        auto bias = type == tensor_type::q4_0 ? s.minus_8_sum : 0;
        auto sum = lanes::finish<nibbles>(sums[m][p], bias);
        total[m][p] = lanes::fma(lanes::mul(sum, lanes::set(s.d)), d, total[m][p]);
        if constexpr (type == tensor_type::q4_1)
          total[m][p] = lanes::fma(minimum, lanes::set(s.d_sum), total[m][p]);
      });
    });
  }
  unroll<rows>(LAMELLA_UNROLLED(m) {
    unroll<panels>(LAMELLA_UNROLLED(p) { output.store<panels>(m, p, total[m][p]); });
  });
}

template <tensor_type type> [[gnu::always_inline]] inline vec load_weights(const std::byte* p) {
  if constexpr (type == tensor_type::f32)
    return lanes::load(reinterpret_cast<const float*>(p));
  else if constexpr (type == tensor_type::f16)
    return lanes::load_f16(p);
  else
    return lanes::load_bf16(p);
}

template <tensor_type type, int rows, int panels>
void plain_tile(const float* x, uint32_t inputs, const std::byte* panel, size_t fetch,
                const tile_output& output) {
  constexpr size_t step = panel_outputs * model::block_bytes(type);
  const auto panel_stride = panel_bytes(type, inputs);
  vec total[rows][panels];
  unroll<rows>(LAMELLA_UNROLLED(m) {
    unroll<panels>(LAMELLA_UNROLLED(p) { total[m][p] = lanes::zero(); });
  });
  for (uint32_t k = 0; k < inputs; ++k) {
    vec w[panels];
    unroll<panels>(LAMELLA_UNROLLED(p) {
      const auto* v = panel + p * panel_stride + k * step;
      w[p] = load_weights<type>(v);
      if (fetch != 0) __builtin_prefetch(v + fetch);
    });
    unroll<rows>(LAMELLA_UNROLLED(m) {
      auto a = lanes::set(x[size_t{m} * inputs + k]);
      unroll<panels>(LAMELLA_UNROLLED(p) { total[m][p] = lanes::fma(w[p], a, total[m][p]); });
    });
  }
  unroll<rows>(LAMELLA_UNROLLED(m) {
    unroll<panels>(LAMELLA_UNROLLED(p) { output.store<panels>(m, p, total[m][p]); });
  });
}

} // namespace
} // namespace lamella::gpu
