/// matmul of the vectorised sets: quantises the input once, then deals out tiles of all products.
/// Included after `lanes`.
#pragma once

#include "gpu/kernels/matmul_tiles.hpp"

namespace lamella::gpu {
namespace {

/// One matmul while it runs.
struct product {
  const matmul_args& args;
  quantised_rows quantised; ///< null where no part needs it
  uint32_t row_block;       ///< rows of an item
  uint32_t panel_block;     ///< panels of an item
};

/// Rows of `type` x one group of panels, in tiles of nearly equal height, `least` to `most` rows.
/// The first one asks for the next group, so that memory works while the others compute.
template <tensor_type type, int least, int most, int panels>
void panel_group(const product& call, const matmul_part& part, uint32_t first_row, uint32_t rows,
                 uint32_t first_panel) {
  constexpr size_t fits_cache = 256 << 10; // of the second level
  const auto inputs = part.weight.inputs;
  const auto stride = panel_bytes(type, inputs);
  const auto* panel = part.weight.data + first_panel * stride;
  auto fetch = panels * stride <= fits_cache ? panels * stride : size_t{4096};
  auto first_output = first_panel * panel_outputs;
  auto last_columns = part.weight.outputs - first_output - (panels - 1) * panel_outputs;
  auto tiles = (rows + most - 1) / most;
  for (uint32_t t = 0; t < tiles; ++t) {
    auto count = rows / tiles + (t < rows % tiles ? 1 : 0);
    tile_output output{part.out + size_t{first_row} * part.out_stride + first_output,
                       part.out_stride,
                       last_columns < panel_outputs ? last_columns : panel_outputs};
    with_constant<least, most>(static_cast<int>(count), [&](auto constant) {
      constexpr int n = decltype(constant)::value;
      if constexpr (is_plain(type)) {
        plain_tile<type, n, panels>(call.args.x + size_t{first_row} * inputs, inputs, panel, fetch,
                                    output);
      } else {
        quantised_tile<type, n, panels>(call.quantised.from(first_row), panel, fetch, output);
      }
    });
    first_row += count;
    fetch = 0;
  }
}

/// Groups of `panels` panels while they last.
template <tensor_type type, int least, int most, int panels>
void panel_groups(const product& call, const matmul_part& part, uint32_t first_row, uint32_t rows,
                  uint32_t& panel, uint32_t last) {
  for (; panel + panels <= last; panel += panels)
    panel_group<type, least, most, panels>(call, part, first_row, rows, panel);
}

template <tensor_type type>
void item_of(const product& call, const matmul_part& part, uint32_t first_row, uint32_t rows,
             uint32_t panel, uint32_t panels) {
  constexpr int tile_rows = is_plain(type) ? lanes::plain_rows : lanes::quantised_rows;
  constexpr int tile_panels = is_plain(type) ? lanes::plain_panels : lanes::quantised_panels;
  constexpr int odd_rows = tile_rows < 2 ? tile_rows : 2; // of a last panel that is left over
  auto last = panel + panels;
  if constexpr (lanes::single_row_panels > tile_panels)
    if (rows == 1) // few registers are needed: more panels at once
      panel_groups<type, 1, 1, lanes::single_row_panels>(call, part, first_row, rows, panel, last);
  if constexpr (!is_plain(type) && lanes::tall_rows > tile_rows)
    if (rows > tile_rows && rows <= lanes::tall_rows) // one tile instead of two
      panel_groups<type, tile_rows + 1, lanes::tall_rows, 1>(call, part, first_row, rows, panel,
                                                             last);
  panel_groups<type, 1, tile_rows, tile_panels>(call, part, first_row, rows, panel, last);
  if constexpr (tile_panels > 1)
    panel_groups<type, 1, odd_rows, 1>(call, part, first_row, rows, panel, last);
}

void run_item(const product& call, const matmul_part& part, size_t item) {
  auto row_blocks = (call.args.rows + call.row_block - 1) / call.row_block;
  auto first_row = static_cast<uint32_t>(item % row_blocks) * call.row_block;
  auto first_panel = static_cast<uint32_t>(item / row_blocks) * call.panel_block;
  auto rows = call.args.rows - first_row;
  auto panels = panel_count(part.weight.outputs) - first_panel;
  if (rows > call.row_block) rows = call.row_block;
  if (panels > call.panel_block) panels = call.panel_block;
  auto run = [&](auto known) {
    item_of<decltype(known)::value>(call, part, first_row, rows, first_panel, panels);
  };
  const auto type = part.weight.type;
  if (model::with_quantised(type, run)) return;
  if (type == tensor_type::f32) run(std::integral_constant<tensor_type, tensor_type::f32>{});
  if (type == tensor_type::f16) run(std::integral_constant<tensor_type, tensor_type::f16>{});
  if (type == tensor_type::bf16) run(std::integral_constant<tensor_type, tensor_type::bf16>{});
}

void matmul(const matmul_args& args, kernel_context context) {
  if (args.rows == 0 || args.parts.empty()) return;
  arena::scope scope{context.scratch};
  product call{args, {}, args.rows, 0};
  size_t panels = 0;
  bool quantised = false, halves = false;
  for (const auto& part : args.parts) {
    panels += panel_count(part.weight.outputs);
    quantised = quantised || !is_plain(part.weight.type);
    halves = halves || form_of(part.weight.type).scales == 2;
  }
  if (quantised) call.quantised = quantise(args, args.parts[0].weight.inputs, halves, context);

  // Rows of an item stay in L2 while its panels pass. A few items per thread even out their pace.
  constexpr uint32_t rows_in_cache = 120;
  if (call.row_block > rows_in_cache) call.row_block = rows_in_cache;
  auto row_blocks = (args.rows + call.row_block - 1) / call.row_block;
  auto wanted = size_t{context.workers.size()} * 4;
  auto block = panels * row_blocks / wanted / 4 * 4;
  call.panel_block = static_cast<uint32_t>(block < 4 ? 4 : block > 64 ? 64 : block);

  size_t items = 0;
  auto items_of = [&](const matmul_part& part) {
    auto count = panel_count(part.weight.outputs);
    return size_t{(count + call.panel_block - 1) / call.panel_block} * row_blocks;
  };
  for (const auto& part : args.parts) items += items_of(part);
  context.workers.for_each(items, [&](size_t item) {
    for (const auto& part : args.parts) {
      auto count = items_of(part);
      if (item < count) return run_item(call, part, item);
      item -= count;
    }
  });
}

} // namespace
} // namespace lamella::gpu
