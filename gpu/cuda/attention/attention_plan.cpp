#include "gpu/cuda/attention/attention_plan.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <stdexcept>
#include <string>

namespace lamella::gpu::cuda {

namespace {

constexpr uint64_t most_positions = uint64_t{1} << 31;

void refuse(size_t span, const char* why) {
  throw std::invalid_argument("attention span " + std::to_string(span) + " " + why);
}

/// Where the content of a plan is collected before its capacity is known.
struct collected {
  std::vector<attention_work_unit> units;
  std::vector<attention_work_row> rows;
  std::vector<attention_work_block> blocks;
  std::vector<attention_work_run> runs;
  uint64_t positions = 0; ///< in the slot table
  uint64_t read = 0;
};

/// Appends the runs of positions [0, count) of a span.
void add_runs(collected& to, size_t span, std::span<const slot_run> runs, uint32_t count) {
  uint32_t covered = 0;
  for (const auto& run : runs) {
    if (covered == count) break;
    if (run.length > UINT32_MAX - run.first) refuse(span, "has a run past the last slot");
    auto length = std::min(run.length, count - covered);
    for (uint32_t done = 0; done < length; done += attention_run_limit)
      to.runs.push_back({static_cast<uint32_t>(to.positions) + covered + done, run.first + done,
                         std::min(length - done, attention_run_limit)});
    covered += length;
  }
  if (covered != count) refuse(span, "has fewer slots than positions");
}

void add_units(collected& to, const attention_span& span, uint32_t unit_positions) {
  auto first = static_cast<uint32_t>(to.positions);
  auto record = static_cast<uint32_t>(to.units.size());
  uint32_t at = 0;
  do {
    auto length = std::min(span.first_position - at, unit_positions);
    auto unit = static_cast<uint32_t>(to.units.size());
    to.units.push_back({span.first_row, first + at, length, unit});
    at += length;
  } while (at < span.first_position);
  to.rows.push_back(
      {record, static_cast<uint32_t>(to.units.size()) - record, first + span.first_position});
  to.read += span.first_position;
}

void add_blocks(collected& to, const attention_span& span, uint32_t rows_per_block) {
  auto first = static_cast<uint32_t>(to.positions);
  for (uint32_t row = 0; row < span.rows; row += rows_per_block)
    to.blocks.push_back({span.first_row + row, std::min(span.rows - row, rows_per_block), first,
                         span.first_position + row});
  for (uint32_t row = 0; row < span.rows; ++row)
    to.rows.push_back({0, 1, first + span.first_position + row});
}

uint32_t class_of(uint64_t count, uint32_t least) {
  if (count == 0) return 0;
  return static_cast<uint32_t>(std::bit_ceil(std::max<uint64_t>(count, least)));
}

template <class T> void place(attention_plan& plan, size_t offset, const std::vector<T>& content) {
  if (!content.empty())
    std::memcpy(plan.bytes.data() + offset, content.data(), content.size() * sizeof(T));
}

} // namespace

attention_plan plan_attention(std::span<const attention_span> spans, std::span<const slot_run> runs,
                              uint32_t group, const attention_capacity& room,
                              uint32_t unit_positions) {
  if (group == 0 || group > 16)
    throw std::invalid_argument("attention of " + std::to_string(group)
                                + " query heads per kv head, 1 to 16 are supported");
  if (unit_positions == 0 || unit_positions % attention_tile != 0)
    throw std::invalid_argument("an attention unit must be a multiple of its tile");
  collected content;
  for (size_t s = 0; s < spans.size(); ++s) {
    const auto& span = spans[s];
    if (span.rows == 0) refuse(s, "has no rows");
    if (span.first_row != content.rows.size()) refuse(s, "does not follow the one before");
    if (span.first_run > runs.size() || span.run_count > runs.size() - span.first_run)
      refuse(s, "has runs out of range");
    auto count = uint64_t{span.first_position} + span.rows;
    if (content.positions + count > most_positions)
      throw std::length_error("attention over more than 2^31 positions");
    add_runs(content, s, runs.subspan(span.first_run, span.run_count),
             static_cast<uint32_t>(count));
    if (span.rows == 1)
      add_units(content, span, unit_positions);
    else
      add_blocks(content, span, attention_columns / group);
    content.positions += count;
  }
  // Rows of blocks have their records behind those of the units. Longest blocks first: the last
  // ones to start are then the short ones.
  auto record = static_cast<uint32_t>(content.units.size());
  for (const auto& block : content.blocks)
    for (uint32_t i = 0; i < block.rows; ++i) content.rows[block.row + i].record = record++;
  std::stable_sort(content.blocks.begin(), content.blocks.end(),
                   [](const auto& a, const auto& b) { return a.position > b.position; });

  attention_plan plan;
  auto rows = static_cast<uint32_t>(content.rows.size());
  auto exact = [](size_t n) { return static_cast<uint32_t>(n); };
  attention_capacity need{rows, exact(content.units.size()), exact(content.blocks.size()),
                          exact(content.runs.size()), exact(content.positions)};
  plan.capacity =
      room.holds(need)
          ? room
          : attention_capacity{rows, class_of(need.units, 64), class_of(need.blocks, 16),
                               class_of(need.runs, 64), class_of(need.positions, 4096)};
  plan.bytes.resize(plan.capacity.plan_bytes());
  plan.positions_read = content.read;
  plan.has_units = !content.units.empty();
  plan.has_blocks = !content.blocks.empty();
  attention_work_header header{need.units, need.blocks, need.runs, rows, unit_positions};
  std::memcpy(plan.bytes.data(), &header, sizeof header);
  place(plan, plan.capacity.units_at(), content.units);
  place(plan, plan.capacity.rows_at(), content.rows);
  place(plan, plan.capacity.blocks_at(), content.blocks);
  place(plan, plan.capacity.runs_at(), content.runs);
  return plan;
}

size_t argument_bytes_most(uint64_t slots, uint32_t rows) {
  const attention_capacity most{rows, class_of(slots / attention_unit + rows, 64),
                                class_of(rows, 16), class_of(slots / 16 + rows, 64), 0};
  return 2 * most.plan_bytes();
}

device_numerics numerics_of(int device_class) {
  return {"cuda-sm" + std::to_string(device_class), "unit=" + std::to_string(attention_unit)
                                                        + " tile=" + std::to_string(attention_tile)
                                                        + " fixed=own splits=96"};
}

} // namespace lamella::gpu::cuda
