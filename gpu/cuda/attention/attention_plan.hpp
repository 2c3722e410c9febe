/// What the attention kernels of a CUDA device need to know about the rows of one iteration, as
/// flat arrays. One plan serves all layers of the iteration: it is uploaded once.
///
/// The positions of a sequence are cut into **units** of a fixed number of positions, aligned to
/// position 0. A unit is attended to from its first to its last tile with a running maximum and
/// gives one record (sum, maximum, weight); records are folded in ascending order (L-M14). Rows of
/// long spans fold theirs as they go. The unit and the tile are part of the numerics id (decision
/// 29).
///
/// A launch reads all counts from the plan's header in device memory, and its grid depends on
/// `attention_capacity` alone. So a CUDA graph captured with one capacity replays with any content
/// that fits: only the words at the same address change.
#pragma once

#include "gpu/device.hpp"
#include "gpu/kernels/operators.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace lamella::gpu::cuda {

inline constexpr uint32_t attention_tile = 32;  ///< positions between two running maxima
inline constexpr uint32_t attention_unit = 512; ///< positions of a record; a multiple of the tile
inline constexpr uint32_t attention_columns = 128; ///< queries (row, g) that share tiles in a block

/// Of devices of a class (90: sm_90). Products take the fixed arithmetic `own` (gemm.hpp).
device_numerics numerics_of(int device_class);

/// One unit of the context of a span of one row, with all heads.
struct attention_work_unit {
  uint32_t row;
  uint32_t first;  ///< of its positions in the slot table
  uint32_t length; ///< positions, 0 only for a row at position 0
  uint32_t record;
};

/// What is known of one row.
struct attention_work_row {
  uint32_t record, records; ///< to be folded in ascending order
  uint32_t own;             ///< its own position in the slot table
  uint32_t unused = 0;
};

/// Some rows of a span of several rows.
struct attention_work_block {
  uint32_t row, rows;
  uint32_t first;    ///< of position 0 in the slot table
  uint32_t position; ///< of the first row; the next rows follow
};

/// A run of slots, and where in the slot table it belongs.
struct attention_work_run {
  uint32_t first, slot, length; ///< length <= attention_run_limit: long runs come in pieces
  uint32_t unused = 0;
};
inline constexpr uint32_t attention_run_limit = 4096;

/// First words of a plan. The counters are the kernels' own and go back to 0 when they end.
struct attention_work_header {
  uint32_t units, blocks, runs, rows;
  uint32_t unit_positions;
  uint32_t next_unit = 0, idle_units = 0;   ///< counters of attend_previous
  uint32_t next_block = 0, idle_blocks = 0; ///< counters of attend_new
  uint32_t unused[7] = {};
};

/// For how much a plan has room. Counts but `rows`, which is the shape's, are rounded up to powers
/// of two, so that plans of one batch fall into few classes.
struct attention_capacity {
  uint32_t rows = 0, units = 0, blocks = 0, runs = 0, positions = 0;

  bool operator==(const attention_capacity&) const = default;
  bool holds(const attention_capacity& other) const {
    return rows == other.rows && units >= other.units && blocks >= other.blocks
           && runs >= other.runs && positions >= other.positions;
  }
  size_t units_at() const { return sizeof(attention_work_header); }
  size_t rows_at() const { return units_at() + size_t{units} * sizeof(attention_work_unit); }
  size_t blocks_at() const { return rows_at() + size_t{rows} * sizeof(attention_work_row); }
  size_t runs_at() const { return blocks_at() + size_t{blocks} * sizeof(attention_work_block); }
  /// Bytes to upload.
  size_t plan_bytes() const { return runs_at() + size_t{runs} * sizeof(attention_work_run); }
  /// Bytes of device memory: the plan, and the slot table behind it.
  size_t device_bytes() const { return plan_bytes() + size_t{positions} * sizeof(uint32_t); }
  /// Records of a layer: one per unit, one per row of a block.
  size_t records() const { return size_t{units} + (blocks == 0 ? 0 : rows); }
};

struct attention_plan {
  attention_capacity capacity;
  std::vector<std::byte> bytes; ///< capacity.plan_bytes() of them
  uint64_t positions_read = 0;  ///< by spans of one row: what attend_previous reads per layer
  bool has_units = false, has_blocks = false;
};

/// Bytes of arguments that a work has at most which attends to `slots` in all, in runs of 16 and
/// more but for the last of each row, in up to `rows` rows: a plan of every class of capacity, and
/// as much again for what else it is told.
size_t argument_bytes_most(uint64_t slots, uint32_t rows);

/// Checks spans and runs and lays them out. `room`: the capacity to keep if all fits in it (of an
/// earlier plan, to replay its graph); else the class that fits. Throws std::invalid_argument for
/// spans that do not cover the rows in order, runs that do not cover a span, `group` outside
/// [1, 16], and std::length_error for more than 2^31 positions.
/// O(rows + runs + units) time.
attention_plan plan_attention(std::span<const attention_span> spans, std::span<const slot_run> runs,
                              uint32_t group, const attention_capacity& room = {},
                              uint32_t unit_positions = attention_unit);

} // namespace lamella::gpu::cuda
