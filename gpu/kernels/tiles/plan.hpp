/// How the products of a call are cut into items on tiles of 16 rows.
#pragma once

#include "gpu/kernels/operators.hpp"
#include "gpu/kernels/panels.hpp"

#include <span>

namespace lamella::gpu {
namespace {

constexpr uint32_t tile_rows = 16;

/// A share of one product: tiles [first_tile, last_tile) of rows and panels [first_panel,
/// last_panel).
struct tile_item {
  const matmul_part* part;
  uint32_t first_tile, last_tile, first_panel, last_panel;

  static constexpr uint32_t most_tiles = 8; ///< stay in the second level while panels pass
};

/// The products of some weights with one input.
class tile_plan {
public:
  /// An item has at most so many panels.
  tile_plan(std::span<const matmul_part> parts, uint32_t rows, unsigned threads,
            uint32_t most_panels)
      : parts_{parts} {
    tiles_ = (rows + tile_rows - 1) / tile_rows;
    row_blocks_ = (tiles_ + tile_item::most_tiles - 1) / tile_item::most_tiles;
    size_t panels = 0;
    for (const auto& part : parts) panels += panel_count(part.weight.outputs);
    // A few items per thread even out their pace.
    const auto block = panels * row_blocks_ / (size_t{threads} * 4);
    panel_block_ = static_cast<uint32_t>(block < 4 ? 4 : block > most_panels ? most_panels : block);
    for (const auto& part : parts) items_ += items_of(part);
  }

  size_t items() const { return items_; }

  tile_item item(size_t number) const {
    const auto* part = parts_.data();
    for (; number >= items_of(*part); ++part) number -= items_of(*part);
    const auto block = static_cast<uint32_t>(number % row_blocks_);
    const auto first_panel = static_cast<uint32_t>(number / row_blocks_) * panel_block_;
    const auto panels = panel_count(part->weight.outputs) - first_panel;
    return {part, tile_of(block), tile_of(block + 1), first_panel,
            first_panel + (panels < panel_block_ ? panels : panel_block_)};
  }

private:
  /// Blocks differ by one tile at most.
  uint32_t tile_of(uint32_t block) const {
    return static_cast<uint32_t>(uint64_t{tiles_} * block / row_blocks_);
  }
  size_t items_of(const matmul_part& part) const {
    const auto panels = panel_count(part.weight.outputs);
    return size_t{(panels + panel_block_ - 1) / panel_block_} * row_blocks_;
  }

  std::span<const matmul_part> parts_;
  uint32_t tiles_ = 0, row_blocks_ = 1, panel_block_ = 1;
  size_t items_ = 0;
};

} // namespace
} // namespace lamella::gpu
