#include "gpu/cuda/attention/attention_plan.hpp"
#include "tests/random.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>

using namespace lamella::gpu;
using namespace lamella::gpu::cuda;
using lamella::tests::splitmix;

namespace {

/// A plan read back the way the kernels read it.
struct opened {
  explicit opened(const attention_plan& plan) : slots(plan.capacity.positions, UINT32_MAX) {
    const auto& c = plan.capacity;
    REQUIRE(plan.bytes.size() == c.plan_bytes());
    auto take = [&](auto& to, size_t at, size_t count, size_t room) {
      REQUIRE(count <= room);
      to.resize(count);
      if (count != 0) std::memcpy(to.data(), plan.bytes.data() + at, count * sizeof(to[0]));
    };
    std::memcpy(&header, plan.bytes.data(), sizeof header);
    take(units, c.units_at(), header.units, c.units);
    take(rows, c.rows_at(), header.rows, c.rows);
    take(blocks, c.blocks_at(), header.blocks, c.blocks);
    take(runs, c.runs_at(), header.runs, c.runs);
    size_t twice = 0;
    for (const auto& run : runs) {
      CHECK(run.length <= attention_run_limit);
      REQUIRE(run.first + run.length <= slots.size());
      for (uint32_t i = 0; i < run.length; ++i) {
        twice += slots[run.first + i] != UINT32_MAX;
        slots[run.first + i] = run.slot + i;
      }
    }
    CHECK(twice == 0);
  }
  attention_work_header header;
  std::vector<attention_work_unit> units;
  std::vector<attention_work_row> rows;
  std::vector<attention_work_block> blocks;
  std::vector<attention_work_run> runs;
  std::vector<uint32_t> slots;
};

/// Slots of a span's positions, walked by hand.
std::vector<uint32_t> slots_of(const attention_span& span, const std::vector<slot_run>& runs) {
  std::vector<uint32_t> slots;
  for (uint32_t r = 0; r < span.run_count; ++r)
    for (uint32_t i = 0; i < runs[span.first_run + r].length; ++i)
      slots.push_back(runs[span.first_run + r].first + i);
  slots.resize(span.first_position + span.rows);
  return slots;
}

} // namespace

TEST_CASE("a plan covers every earlier position of every row once, in units from position 0") {
  constexpr uint64_t seed = 12;
  INFO("seed " << seed);
  splitmix random{seed};
  for (int round = 0; round < 200; ++round) {
    const auto group = static_cast<uint32_t>(1 + random.below(16));
    std::vector<attention_span> spans;
    std::vector<slot_run> runs;
    uint32_t rows = 0, slot = 0;
    const auto count = 1 + random.below(12);
    for (uint64_t s = 0; s < count; ++s) {
      const auto n = static_cast<uint32_t>(random.below(2) == 0 ? 1 : 1 + random.below(300));
      const auto position = static_cast<uint32_t>(random.below(5) == 0 ? 0 : random.below(9000));
      spans.push_back({rows, n, position, static_cast<uint32_t>(runs.size()), 0});
      for (uint32_t covered = 0; covered < position + n;) {
        const auto length = static_cast<uint32_t>(1 + random.below(round % 3 == 0 ? 6000 : 40));
        runs.push_back({slot += 3, length}); // the last may be longer than needed
        slot += length;
        covered += length;
      }
      spans.back().run_count = static_cast<uint32_t>(runs.size()) - spans.back().first_run;
      rows += n;
    }
    const auto plan = plan_attention(spans, runs, group);
    const opened x{plan};
    REQUIRE(x.rows.size() == rows);
    CHECK(plan.capacity.rows == rows);
    CHECK(x.header.unit_positions == attention_unit);

    std::vector<int> records(plan.capacity.records());
    std::vector<int> blocked(rows);
    size_t unit = 0;
    uint64_t read = 0;
    for (const auto& span : spans) {
      const auto slots = slots_of(span, runs);
      for (uint32_t i = 0; i < span.rows; ++i) {
        const auto& row = x.rows[span.first_row + i];
        CHECK(x.slots[row.own] == slots[span.first_position + i]);
        for (uint32_t r = 0; r < row.records; ++r) ++records.at(row.record + r);
        if (span.rows == 1) {
          uint32_t at = 0;
          for (uint32_t r = 0; r < row.records; ++r, ++unit) {
            const auto& u = x.units.at(unit);
            CHECK(u.row == span.first_row);
            CHECK(u.record == row.record + r);
            CHECK(at == r * attention_unit);
            REQUIRE(at + u.length <= span.first_position);
            CHECK((u.length == attention_unit || at + u.length == span.first_position));
            CHECK(std::equal(slots.begin() + at, slots.begin() + at + u.length,
                             x.slots.begin() + u.first));
            at += u.length;
          }
          CHECK(at == span.first_position);
          read += at;
        } else {
          CHECK(row.records == 1);
        }
      }
      for (const auto& block : x.blocks) {
        if (block.row < span.first_row || block.row >= span.first_row + span.rows) continue;
        CHECK(block.rows * group <= attention_columns);
        CHECK(block.position == span.first_position + block.row - span.first_row);
        for (uint32_t i = 0; i < block.rows; ++i) {
          ++blocked.at(block.row + i);
          CHECK(x.rows[block.row + i].record == x.rows[block.row].record + i);
        }
        CHECK(std::equal(slots.begin(), slots.begin() + block.position + block.rows,
                         x.slots.begin() + block.first));
      }
      for (uint32_t i = 0; i < span.rows; ++i)
        CHECK(blocked[span.first_row + i] == (span.rows > 1));
    }
    CHECK(unit == x.units.size());
    CHECK(read == plan.positions_read);
    for (auto owners : records) CHECK(owners <= 1);
  }
}

TEST_CASE("plans of one class have one layout, and a larger one is kept when it is offered") {
  const std::vector<slot_run> runs{{0, 5000}};
  const auto plan_at = [&](uint32_t position, const attention_capacity& room = {}) {
    const std::vector<attention_span> spans{{0, 1, position, 0, 1}};
    return plan_attention(spans, runs, 8, room);
  };
  CHECK(plan_at(10).capacity == plan_at(4000).capacity);
  CHECK(plan_at(10).bytes.size() == plan_at(4000).bytes.size());
  const auto large = plan_at(4999);
  CHECK(large.capacity != plan_at(10).capacity);
  CHECK(plan_at(10, large.capacity).capacity == large.capacity);
  CHECK(opened{plan_at(10, large.capacity)}.units.size() == 1);
  CHECK(plan_at(4999, plan_at(10).capacity).capacity == large.capacity); // too small: not kept
}

TEST_CASE("a plan refuses spans and runs that do not fit each other") {
  const std::vector<slot_run> runs{{0, 10}, {20, 10}};
  const auto refused = [&](attention_span span, uint32_t group = 8, uint32_t unit = 1024) {
    CHECK_THROWS_AS(plan_attention({&span, 1}, runs, group, {}, unit), std::invalid_argument);
  };
  refused({0, 1, 20, 0, 2});   // one slot too few
  refused({0, 1, 10, 0, 1});   // the own position has none
  refused({0, 0, 5, 0, 2});    // no rows
  refused({1, 1, 5, 0, 2});    // a row is left out
  refused({0, 1, 5, 1, 2});    // runs past the end
  refused({0, 1, 5, 3, 0});    // a first run past the end
  refused({0, 1, 5, 0, 2}, 0); // groups
  refused({0, 1, 5, 0, 2}, 17);
  refused({0, 1, 5, 0, 2}, 8, 0); // units
  refused({0, 1, 5, 0, 2}, 8, 100);
  const std::vector<slot_run> past{{UINT32_MAX - 3, 10}};
  const std::vector<attention_span> span{{0, 1, 5, 0, 1}};
  CHECK_THROWS_AS(plan_attention(span, past, 8), std::invalid_argument);
  const std::vector<slot_run> huge{{0, UINT32_MAX}};
  const std::vector<attention_span> far{{0, 1, UINT32_MAX - 2, 0, 1}};
  CHECK_THROWS_AS(plan_attention(far, huge, 8), std::length_error);
  const auto nothing = plan_attention({}, {}, 8);
  CHECK((nothing.capacity.rows == 0 && !nothing.has_units && !nothing.has_blocks));
}

TEST_CASE("the room for arguments holds a plan of the shortest runs, whatever the batch") {
  for (uint32_t rows : {1u, 7u, 64u, 512u})
    for (uint32_t length : {1u, 17u, 1000u, 5000u}) {
      CAPTURE(rows);
      CAPTURE(length);
      std::vector<attention_span> spans;
      std::vector<slot_run> runs;
      uint64_t slots = 0;
      for (uint32_t r = 0; r < rows; ++r) {
        spans.push_back({r, 1, length - 1, static_cast<uint32_t>(runs.size()), 0});
        for (uint32_t at = 0; at < length; at += 16)
          runs.push_back({r * 8192 + at * 2 % 8192, std::min(16u, length - at)});
        spans.back().run_count = static_cast<uint32_t>(runs.size()) - spans.back().first_run;
        slots += length;
      }
      CHECK(plan_attention(spans, runs, 4).bytes.size() <= argument_bytes_most(slots, rows));
    }
}
