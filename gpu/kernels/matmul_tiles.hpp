/// The inner loops of matmul: a tile of rows x panels for each way weights are stored.
///
/// A row's arithmetic is the same in every tile shape, so results do not depend on which tile takes
/// it: an exact integer sum over the elements that share a scale, 32 or 16; fp32 across them in
/// ascending order. Included after `lanes`.
#pragma once

#include "gpu/kernels/unroll.hpp"

#include "gpu/kernels/matmul_codes.hpp"
#include "gpu/kernels/matmul_input.hpp"

namespace lamella::gpu {
namespace {

using model::tensor_type;
using vec = lanes::vec;

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

/// d times the sum of the activations that share the h-th scale of block `at`.
template <packed_form form, int h>
[[gnu::always_inline]] inline float scaled_sum(const quantised_rows& x, size_t at) {
  return form.scales == 1 ? x.scale[at].d_sum : x.halves[at].d_sum[h];
}

/// Where their integer sums begin, so that the operand form.zero() counts as 0.
template <packed_form form, int h>
[[gnu::always_inline]] inline int32_t bias_of(const quantised_rows& x, size_t at) {
  constexpr int zero = form.zero();
  if constexpr (zero == 0 || (form.operand_bits() == 8 && !lanes::raised_bytes)) {
    return 0;
  } else if constexpr (form.scales == 1) {
    static_assert(zero % 8 == 0);
    return zero == 128 ? x.scale[at].minus_128_sum : zero / 8 * x.scale[at].minus_8_sum;
  } else {
    static_assert(zero == 32 || zero == 4);
    return x.halves[at].minus_32_sum[h] >> (zero == 32 ? 0 : 3); // exact
  }
}

/// `fetch`: distance to the weights to be asked for meanwhile, 0 for none.
template <tensor_type type, int rows, int panels>
void quantised_tile(const quantised_rows& x, const std::byte* panel, size_t fetch,
                    const tile_output& output) {
  constexpr auto form = form_of(type);
  constexpr int bits = form.operand_bits();
  constexpr int at_once = lanes::groups_at_once<bits>;
  constexpr int steps = 8 / form.scales / at_once; // of the elements that share a scale
  const auto blocks = x.inputs / 32;
  const auto panel_stride = panel_bytes(type, x.inputs);
  vec total[rows][panels];
  unroll<rows>(LAMELLA_UNROLLED(m) {
    unroll<panels>(LAMELLA_UNROLLED(p) { total[m][p] = lanes::zero(); });
  });
  for (uint32_t b = 0; b < blocks; ++b) {
    const auto* group = panel + b / form.group_blocks() * form.group_bytes();
    const auto place = b % form.group_blocks();
    const auto* scales = group + form.scale_offset(place);
    const auto* codes = group + form.code_offset(place);
    if (fetch != 0) fetch_block<form, panels>(group + fetch, place, panel_stride);
    unroll<form.scales>(LAMELLA_UNROLLED(h) {
      lanes::block_sums<bits> sums[rows][panels];
      unroll<rows>(LAMELLA_UNROLLED(m) {
        const auto bias = bias_of<form, h>(x, size_t{m} * blocks + b);
        unroll<panels>(LAMELLA_UNROLLED(p) { sums[m][p] = lanes::start<bits>(bias); });
      });
      unroll<steps>(LAMELLA_UNROLLED(i) {
        constexpr int g = (h * steps + i) * at_once;
        lanes::values w[panels][at_once];
        unroll<panels>(LAMELLA_UNROLLED(p) {
          unroll<at_once>(LAMELLA_UNROLLED(k) {
            w[p][k] = load_operands<form, g + k>(codes + p * panel_stride);
          });
        });
        unroll<rows>(LAMELLA_UNROLLED(m) {
          const auto* q = x.q + size_t{m} * x.inputs + b * 32 + g * 4;
          lanes::activations a[at_once];
          unroll<at_once>(LAMELLA_UNROLLED(k) { a[k] = lanes::broadcast(q + k * 4); });
          unroll<panels>(
              LAMELLA_UNROLLED(p) { sums[m][p] = lanes::accumulate<bits>(sums[m][p], w[p], a); });
        });
      });
      unroll<panels>(LAMELLA_UNROLLED(p) {
        const auto step = p * panel_stride;
        auto scale = load_scale<form, h>(group + step, scales + step);
        [[maybe_unused]] vec minimum;
        if constexpr (form.has_minimum)
          minimum = load_minimum<form, h>(group + step, scales + step);
        unroll<rows>(LAMELLA_UNROLLED(m) {
          const auto at = size_t{m} * blocks + b;
          auto sum = lanes::finish<bits>(sums[m][p], bias_of<form, h>(x, at));
          total[m][p] = lanes::fma(lanes::mul(sum, lanes::set(x.scale[at].d)), scale, total[m][p]);
          if constexpr (form.has_minimum)
            total[m][p] = lanes::fma(minimum, lanes::set(scaled_sum<form, h>(x, at)), total[m][p]);
        });
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
      if (fetch != 0) fetch_line(v + fetch);
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
