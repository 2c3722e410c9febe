/// Products of bf16 weights on tiles. Included after `lanes` and `tile_unit`.
///
/// An activation is the sum of two bf16, high and low, so that it counts with 16 bits: a product is
/// high x weight, then low x weight. Neighbours of K are the pairs that one operation adds.
///
/// Any number of rows takes tiles, for the order of these sums is that of the tile operation. It
/// does not depend on the rows and outputs that share a call, so a row has the same bytes in each.
#pragma once

#include "gpu/kernels/matmul_tiles.hpp"
#include "gpu/kernels/rooms.hpp"
#include "gpu/kernels/tiles/attention.hpp"
#include "gpu/kernels/tiles/plan.hpp"

namespace lamella::gpu {
namespace {

constexpr uint32_t step_inputs = 32; ///< of K, that one tile operation sums

/// The rows of a product, split once for all its parts: [tiles of 16 rows, steps of 32 inputs],
/// split_bytes each. What a last tile or step lacks is 0.
struct split_rows {
  const std::byte* data = nullptr;
  uint32_t rows = 0, steps = 0;

  uint32_t tiles() const { return (rows + tile_rows - 1) / tile_rows; }
  size_t tile_apart() const { return size_t{steps} * split_bytes; }
  const std::byte* at(uint32_t tile, uint32_t step) const {
    return data + tile * tile_apart() + size_t{step} * split_bytes;
  }
};

/// 32 activations, of which `count` exist, as a line of the tiles of high and of low parts.
inline void split_line(const float* x, uint32_t count, std::byte* to) {
  float padded[step_inputs];
  if (count < step_inputs) {
    __builtin_memset(padded, 0, sizeof padded);
    __builtin_memcpy(padded, x, count * sizeof *x);
    x = padded;
  }
  for (int i = 0; i < 2; ++i, x += 16, to += 32) {
    const auto whole = lanes::load(x), high = lanes::rounded_bf16(whole);
    lanes::store_bf16(to, high);
    lanes::store_bf16(to + tile_bytes, lanes::sub(whole, high));
  }
}

inline split_rows split_inputs(const matmul_args& args, uint32_t inputs, kernel_context context) {
  split_rows result{nullptr, args.rows, (inputs + step_inputs - 1) / step_inputs};
  const auto tile_apart = result.tile_apart();
  auto* all = context.scratch.allocate<std::byte>(result.tiles() * tile_apart);
  context.workers.for_each(result.tiles(), [&](size_t tile) {
    auto* to = all + tile * tile_apart;
    const auto first = static_cast<uint32_t>(tile) * tile_rows;
    const auto rows = args.rows - first < tile_rows ? args.rows - first : tile_rows;
    if (rows < tile_rows) __builtin_memset(to, 0, tile_apart);
    for (uint32_t m = 0; m < rows; ++m) {
      const auto* x = args.x + size_t{first + m} * inputs;
      for (uint32_t k = 0; k < inputs; k += step_inputs)
        split_line(x + k, inputs - k < step_inputs ? inputs - k : step_inputs,
                   to + size_t{k / step_inputs} * split_bytes + m * 64);
    }
  });
  result.data = all;
  return result;
}

constexpr size_t weight_line = panel_outputs * 2; ///< of a panel: 16 outputs

/// The weights of a panel for one step, from which `count` lines exist, as the right side of tile
/// operations. `fetch`: distance to the weights to be asked for meanwhile.
inline void pair_weights(const std::byte* from, uint32_t count, size_t fetch, std::byte* to) {
  std::byte padded[tile_bytes];
  if (count < step_inputs) {
    __builtin_memset(padded, 0, sizeof padded);
    __builtin_memcpy(padded, from, count * weight_line);
    from = padded, fetch = 0;
  }
  unroll<16>(LAMELLA_UNROLLED(i) {
    lanes::pair_halves(from + i * 64, to + i * 64);
    fetch_line(from + fetch + i * 64);
  });
}

/// One step of `lefts` tiles of rows x `rights` panels: their sums are registers 0 to 3.
template <int lefts, int rights>
[[gnu::always_inline]] inline void add_step(const tile_unit::halves& unit, const std::byte* left,
                                            size_t left_apart, const std::byte* right) {
  unroll<rights>(LAMELLA_UNROLLED(i) { unit.template load<6 + i>(right + i * tile_bytes, 64); });
  unroll<2>(LAMELLA_UNROLLED(part) {
    unroll<lefts>(LAMELLA_UNROLLED(g) {
      unit.template load<4 + g>(left + g * left_apart + part * tile_bytes, 64);
    });
    unroll<lefts>(LAMELLA_UNROLLED(g) {
      unroll<rights>(
          LAMELLA_UNROLLED(i) { unit.template multiply<g * rights + i, 4 + g, 6 + i>(); });
    });
  });
}

/// An item while it runs.
class bf16_item {
public:
  static constexpr uint32_t most_panels = 16; ///< of an item whose sums take several rounds

  bf16_item(const split_rows& x, const tile_item& item, float* room)
      : x_{x}, item_{item}, unit_{static_cast<int>(x.rows < tile_rows ? x.rows : tile_rows)},
        sums_{room}, weights_{reinterpret_cast<std::byte*>(room + sum_floats(x.steps))} {}

  /// Whether all steps are one round, whose sums stay in registers.
  static bool is_one_round(uint32_t steps) { return steps <= steps_at_once; }
  static size_t floats(uint32_t steps) {
    return sum_floats(steps) + 2 * steps_at_once * tile_bytes / sizeof(float);
  }

  void run() {
    for (uint32_t first = 0; first < x_.steps; first += steps_at_once) {
      const auto left = x_.steps - first;
      const round some{first, left < steps_at_once ? left : steps_at_once};
      auto panel = item_.first_panel;
      for (; panel + 2 <= item_.last_panel; panel += 2) run_panels<2>(some, panel);
      if (panel < item_.last_panel) run_panels<1>(some, panel);
    }
  }

private:
  /// Steps whose weights lie paired at once: those of two panels stay in the second level of the
  /// cache beside the rows.
  static constexpr uint32_t steps_at_once = 64;
  static constexpr size_t tile_sum = tile_rows * panel_outputs; ///< floats

  struct round {
    uint32_t first, steps;
  };

  static size_t sum_floats(uint32_t steps) {
    return tile_sum * (is_one_round(steps) ? 4 : tile_item::most_tiles * most_panels);
  }
  const matmul_part& part() const { return *item_.part; }

  template <int panels> void run_panels(const round& some, uint32_t panel) {
    bool fresh = true;
    auto tile = item_.first_tile;
    for (; tile + 2 <= item_.last_tile; tile += 2, fresh = false)
      run_tiles<2, panels>(some, tile, panel, fresh);
    if (tile < item_.last_tile) run_tiles<1, panels>(some, tile, panel, fresh);
  }

  /// `fresh`: weights are still to be paired, each step's beside the products of the one before.
  template <int tiles, int panels>
  void run_tiles(const round& some, uint32_t tile, uint32_t panel, bool fresh) {
    auto* sums = sums_of(tile, panel);
    if (some.first == 0)
      clear_sums<tiles * panels>(unit_);
    else
      unroll<tiles * panels>(
          LAMELLA_UNROLLED(i) { unit_.template load<i>(sums + i * tile_sum, 64); });
    // Weights for no other tile take turns in two places, which stay in the first level.
    const bool once = item_.last_tile - item_.first_tile <= tiles;
    const auto place = [&](uint32_t step) {
      return weights_ + size_t{once ? step % 2 : step} * panels * tile_bytes;
    };
    if (fresh) pair<panels>(panel, some.first, place(0));
    for (uint32_t s = 0; s < some.steps; ++s) {
      if (fresh && s + 1 < some.steps) pair<panels>(panel, some.first + s + 1, place(s + 1));
      add_step<tiles, panels>(unit_, x_.at(tile, some.first + s), x_.tile_apart(), place(s));
    }
    unroll<tiles * panels>(
        LAMELLA_UNROLLED(i) { unit_.template store<i>(sums + i * tile_sum, 64); });
    if (some.first + some.steps < x_.steps) return;
    unroll<tiles>(LAMELLA_UNROLLED(g) {
      unroll<panels>(
          LAMELLA_UNROLLED(i) { put(sums + (g * panels + i) * tile_sum, tile + g, panel + i); });
    });
  }

  /// Where the sums of up to two tiles and two panels, side by side, are between rounds.
  float* sums_of(uint32_t tile, uint32_t panel) {
    if (is_one_round(x_.steps)) return sums_;
    const auto tiles = item_.last_tile - item_.first_tile;
    const auto width = item_.last_panel - panel < 2 ? 1u : 2u;
    return sums_
           + ((panel - item_.first_panel) * tiles + (tile - item_.first_tile) * width) * tile_sum;
  }

  template <int panels> void pair(uint32_t panel, uint32_t step, std::byte* to) {
    constexpr size_t fits_cache = 256 << 10; // of the second level, beside the rest
    const auto stride = panel_bytes(tensor_type::bf16, part().weight.inputs);
    const auto fetch = panels * stride <= fits_cache ? panels * stride : size_t{4096};
    const auto left = part().weight.inputs - step * step_inputs;
    const auto* from = part().weight.data + panel * stride + size_t{step} * tile_bytes;
    unroll<panels>(LAMELLA_UNROLLED(i) {
      pair_weights(from + i * stride, left < step_inputs ? left : step_inputs, fetch,
                   to + i * tile_bytes);
    });
  }

  void put(const float* sums, uint32_t tile, uint32_t panel) {
    const auto row = tile * tile_rows, output = panel * panel_outputs;
    const auto rows = x_.rows - row < tile_rows ? x_.rows - row : tile_rows;
    const auto columns = part().weight.outputs - output;
    const tile_output to{part().out + row * part().out_stride + output, part().out_stride,
                         columns < panel_outputs ? columns : panel_outputs};
    for (uint32_t m = 0; m < rows; ++m)
      to.store<1>(static_cast<int>(m), 0, lanes::load(sums + m * panel_outputs));
  }

  const split_rows& x_;
  const tile_item& item_;
  tile_unit::halves unit_;
  float* sums_;
  std::byte* weights_; ///< [steps_at_once, or 2][panels] as tiles
};

/// Products of bf16 weights; `parts` is not empty and all have the same inputs.
inline void bf16_matmul(const matmul_args& args, std::span<const matmul_part> parts,
                        kernel_context context) {
  const auto x = split_inputs(args, parts[0].weight.inputs, context);
  const tile_plan plan{parts, args.rows, context.workers.size(),
                       bf16_item::is_one_round(x.steps) ? 64 : bf16_item::most_panels};
  for_each_with_room(context, plan.items(), bf16_item::floats(x.steps),
                     [&](size_t number, float* room) {
                       bf16_item{x, plan.item(number), room}.run();
                     });
}

} // namespace
} // namespace lamella::gpu
