/// Products of quantised weights and 16 rows or more on tiles.
///
/// A tile operation gives the integer sums of 16 rows and one panel over the elements that share a
/// scale. Those are exact, and what follows is the arithmetic of quantised_tile in the same order.
/// So a row has the bytes of the products without tiles, which fewer rows take: a tile would be
/// mostly empty, and memory is the limit there. Included after `lanes` and `tile_unit`.
#pragma once

#include "gpu/kernels/matmul_tiles.hpp"
#include "gpu/kernels/rooms.hpp"
#include "gpu/kernels/tiles/plan.hpp"

namespace lamella::gpu {
namespace {

/// A block of 32 inputs of 16 rows as int8, as a tile operation takes it, with what their sums are
/// multiplied with. Side by side, because the processor takes loads whose addresses end as those of
/// a store before them for loads of what it stores: rows of a large matrix would wait.
struct alignas(64) tile_input {
  int8_t q[tile_rows][32];
  float d[tile_rows];       ///< value = d * q
  float sums[3][tile_rows]; ///< d * sum of q: of all 32, and of either half
};

/// The rows of a product, quantised once for all its parts: [tiles of 16 rows, K / 32]. Rows that a
/// last tile lacks are 0.
struct tile_inputs {
  const tile_input* blocks;
  uint32_t rows, inputs;

  const tile_input* tile(uint32_t number) const { return blocks + size_t{number} * (inputs / 32); }
  uint32_t tiles() const { return (rows + tile_rows - 1) / tile_rows; }
};

tile_inputs quantise_tiles(const matmul_args& args, uint32_t inputs, bool with_halves,
                           kernel_context context) {
  tile_inputs result{nullptr, args.rows, inputs};
  const auto blocks = inputs / 32;
  auto* all = context.scratch.allocate<tile_input>(size_t{result.tiles()} * blocks);
  context.workers.for_each(result.tiles(), [&](size_t tile) {
    auto* to = all + tile * blocks;
    const auto first = static_cast<uint32_t>(tile) * tile_rows;
    const auto rows = args.rows - first < tile_rows ? args.rows - first : tile_rows;
    if (rows < tile_rows) __builtin_memset(to, 0, blocks * sizeof *to);
    for (uint32_t m = 0; m < rows; ++m) {
      const auto* x = args.x + size_t{first + m} * inputs;
      for (uint32_t b = 0; b < blocks; ++b) {
        block_scale scale;
        quantise_row(x + size_t{b} * 32, 32, to[b].q[m], &scale);
        to[b].d[m] = scale.d;
        to[b].sums[0][m] = scale.d_sum;
        if (!with_halves) continue;
        half_sums halves;
        sum_halves(to[b].q[m], &scale, 1, &halves);
        to[b].sums[1][m] = halves.d_sum[0];
        to[b].sums[2][m] = halves.d_sum[1];
      }
    }
  });
  result.blocks = all;
  return result;
}

/// Integer sums of a tile: of 16 rows and the outputs of a panel.
struct alignas(64) tile_sums {
  int32_t v[tile_rows][panel_outputs];
};

/// Weights of one panel as signed bytes, [K / 4][16 outputs][4]; and the sums of two tile
/// operations.
struct tile_room {
  tile_sums* sums;
  int8_t* operands;

  explicit tile_room(float* room)
      : sums{reinterpret_cast<tile_sums*>(room)}, operands{reinterpret_cast<int8_t*>(sums + 2)} {}
  static size_t floats(uint32_t inputs) {
    return (2 * sizeof(tile_sums) + size_t{inputs} * panel_outputs) / sizeof(float);
  }
};

template <tensor_type type>
void unpack_panel(const std::byte* panel, uint32_t inputs, int8_t* operands) {
  constexpr auto form = form_of(type);
  for (uint32_t b = 0; b < inputs / 32; ++b, operands += 32 * panel_outputs) {
    const auto* codes = panel + b / form.group_blocks() * form.group_bytes()
                        + form.code_offset(b % form.group_blocks());
    unroll<8>(LAMELLA_UNROLLED(g) {
      lanes::store_signed<form.zero()>(operands + g * 64, load_operands<form, g>(codes));
    });
  }
}

/// A tile of rows and one panel, whose weights lie in room.operands too.
template <tensor_type type> struct matrix_tile {
  static constexpr auto form = form_of(type);
  static constexpr uint32_t parts = form.scales; ///< of a block, with one scale each
  static constexpr int elements = 32 / parts;
  using session = typename tile_unit::session<elements>;

  const tile_input* x;
  const std::byte* panel;
  size_t fetch; ///< as for quantised_tile
  const tile_room& room;

  /// Begins the operation over part `step`. Even ones have slot 0, odd ones slot 1.
  template <int slot>
  [[gnu::always_inline]] void multiply(const session& unit, uint32_t step) const {
    unit.template multiply<slot>(x[step / parts].q[0] + step % parts * elements, 32,
                                 room.operands + size_t{step} * elements * panel_outputs);
  }

  /// Scales the sums of part `step`, which lie in room.sums[slot].
  template <int slot>
  [[gnu::always_inline]] void scale(uint32_t step, vec (&total)[tile_rows]) const {
    constexpr int h = parts == 1 ? 0 : slot;
    const auto b = step / parts;
    const auto* group = panel + b / form.group_blocks() * form.group_bytes();
    const auto place = b % form.group_blocks();
    const auto* scales = group + form.scale_offset(place);
    if (h == 0 && fetch != 0) fetch_block<form, 1>(group + fetch, place, 0);
    const auto& input = x[b];
    const auto factor = load_scale<form, h>(group, scales);
    [[maybe_unused]] vec minimum;
    if constexpr (form.has_minimum) minimum = load_minimum<form, h>(group, scales);
    unroll<tile_rows>(LAMELLA_UNROLLED(m) {
      const auto sum = lanes::load_i32(room.sums[slot].v[m]);
      total[m] = lanes::fma(lanes::mul(sum, lanes::set(input.d[m])), factor, total[m]);
      if constexpr (form.has_minimum)
        total[m] = lanes::fma(minimum, lanes::set(input.sums[parts == 1 ? 0 : 1 + h][m]), total[m]);
    });
  }

  /// While the sums of one operation are scaled, those of the next leave their tile, and the one
  /// after that begins: neither waits for the other. `rows` of the tile are stored.
  void run(const session& unit, uint32_t blocks, uint32_t rows, const tile_output& output) const {
    const auto steps = blocks * parts;
    vec total[tile_rows];
    unroll<tile_rows>(LAMELLA_UNROLLED(m) { total[m] = lanes::zero(); });
    const auto take = [&](auto slot, uint32_t step) __attribute__((always_inline)) {
      constexpr int own = decltype(slot)::value, other = 1 - own;
      if (step + 2 < steps) multiply<own>(unit, step + 2);
      if (step + 1 < steps) unit.template store<other>(room.sums[other].v[0]);
      scale<own>(step, total);
    };
    multiply<0>(unit, 0);
    unit.template store<0>(room.sums[0].v[0]);
    if (steps > 1) multiply<1>(unit, 1);
    uint32_t step = 0;
    for (; step + 2 <= steps; step += 2) {
      take(std::integral_constant<int, 0>{}, step);
      take(std::integral_constant<int, 1>{}, step + 1);
    }
    if (step < steps) take(std::integral_constant<int, 0>{}, step);
    unroll<tile_rows>(LAMELLA_UNROLLED(m) {
      if (m < rows) output.store<1>(m, 0, total[m]);
    });
  }
};

template <tensor_type type>
void run_tiles(const tile_inputs& x, const tile_item& item, const tile_room& room) {
  const typename matrix_tile<type>::session unit;
  const auto& weight = item.part->weight;
  const auto stride = panel_bytes(type, weight.inputs);
  for (auto p = item.first_panel; p < item.last_panel; ++p) {
    const auto* panel = weight.data + p * stride;
    const auto first_output = p * panel_outputs, columns = weight.outputs - first_output;
    unpack_panel<type>(panel, weight.inputs, room.operands);
    auto fetch = stride;
    for (auto tile = item.first_tile; tile < item.last_tile; ++tile) {
      const auto row = size_t{tile} * tile_rows;
      const tile_output output{item.part->out + row * item.part->out_stride + first_output,
                               item.part->out_stride,
                               columns < panel_outputs ? columns : panel_outputs};
      matrix_tile<type>{x.tile(tile), panel, fetch, room}.run(
          unit, x.inputs / 32, x.rows - static_cast<uint32_t>(row), output);
      fetch = 0;
    }
  }
}

/// Products of quantised weights; `parts` is not empty and all have the same inputs.
inline void quantised_matmul(const matmul_args& args, std::span<const matmul_part> parts,
                             bool with_halves, kernel_context context) {
  const auto inputs = parts[0].weight.inputs;
  const auto x = quantise_tiles(args, inputs, with_halves, context);
  const tile_plan plan{parts, args.rows, context.workers.size(), 64};
  for_each_with_room(context, plan.items(), tile_room::floats(inputs),
                     [&](size_t number, float* own) {
                       const auto item = plan.item(number);
                       model::with_quantised(item.part->weight.type, [&](auto known) {
                         run_tiles<decltype(known)::value>(x, item, tile_room{own});
                       });
                     });
}

} // namespace
} // namespace lamella::gpu
