// Mini-batches: which rows have frames of their own, and what a shard does with the first ones.
#include "gpu/host/host_engine.hpp"
#include "gpu/ring/device_ring.hpp"
#include "gpu/runners/attention_runner.hpp"
#include "gpu/runners/mini_batches.hpp"
#include "tests/gpu/kernels/kernel_support.hpp"

#include <doctest/doctest.h>

namespace lamella::gpu::test {

namespace {

using progress = work::progress;
using ranges = std::vector<row_range>;
constexpr uint32_t layers = 2, kv_heads = 2, dim = 8, slots = 64;

/// A shard with three sequences in two mini-batches, and the rings to a replica. Steps are taken by
/// hand.
struct shard {
  machine here{1};
  host_engine engine{1, reference_operators()};
  std::unique_ptr<device> replica = engine.make_device("r"), memory = engine.make_device("m");
  std::shared_ptr<kv_cache> cache =
      std::make_shared<kv_cache>(*memory, layers, slots, kv_heads, dim, half_type::f16);
  device_ring forth, back;
  arena workspace;

  explicit shard(uint32_t mini_batches) {
    ring_terms terms;
    terms.slots = frames_per_link(mini_batches);
    terms.slot_bytes = 4096;
    forth = make_device_ring(*replica, *memory, terms);
    back = make_device_ring(*memory, *replica, terms);
  }
  attention_launch launch(uint32_t mini_batches) const {
    attention_launch x;
    x.tag.iteration = 1;
    x.rows = 3;
    x.spans = {{0, 1, 4, 0, 1}, {1, 1, 9, 1, 1}, {2, 1, 2, 2, 1}};
    x.runs = {{0, 5}, {10, 10}, {30, 3}};
    x.mini_batches = mini_batches;
    return x;
  }
  /// Of so many rows.
  void send(uint32_t rows, uint32_t layer, frame_kind kind) {
    const auto bytes = rows * kv_heads * dim * 2 * (kind == frame_kind::kv ? 2 : 1);
    auto* p = forth.to->reserve(bytes);
    REQUIRE(p != nullptr);
    std::fill_n(p, bytes, std::byte{0});
    forth.to->commit({0, 1, 0, layer, kind, 0});
  }
  progress step(work& x) { return x.advance({here.workers, here.scratch, &workspace}); }
  /// Bytes of the next output; nothing: it has not come.
  std::optional<size_t> take_output() {
    const auto* x = back.from->peek(0);
    if (x == nullptr) return std::nullopt;
    const auto bytes = x->payload.size();
    back.from->release();
    return bytes;
  }
};

} // namespace

TEST_CASE("V-M08 rows are divided into about equal parts, none of them empty") {
  CHECK(mini_batches(7, 3, true) == ranges{{0, 2}, {2, 2}, {4, 3}});
  CHECK(mini_batches(4, 2, true) == ranges{{0, 2}, {2, 2}});
  CHECK(mini_batches(2, 4, true) == ranges{{0, 1}, {1, 1}});
  CHECK(mini_batches(5, 1, true) == ranges{{0, 5}});
  CHECK(mini_batches(0, 3, true).empty());
  CHECK(mini_batches(0, 1, false).empty());
  CHECK(mini_batches(7, 3, false) == ranges{{0, 7}}); // a prompt is among them
  for (uint32_t rows = 1; rows < 40; ++rows)
    for (uint32_t parts = 1; parts <= 8; ++parts) {
      uint32_t next = 0;
      for (const auto& x : mini_batches(rows, parts, true)) {
        CHECK(x.first == next);
        CHECK(x.count > 0);
        next += x.count;
      }
      CHECK(next == rows);
    }
}

TEST_CASE("V-M08 a shard attends to a mini-batch while the next one is on the wire, and answers it "
          "before K and V of the next one") {
  shard s{2};
  attention_runner runs{s.cache, s.memory->ops(), s.launch(2), {{s.forth.from, s.back.to}}};
  for (uint32_t layer = 0; layer < layers; ++layer) {
    CAPTURE(layer);
    CHECK(s.step(runs) == progress::blocked);
    s.send(1, layer, frame_kind::q);
    CHECK(s.step(runs) == progress::advanced); // its old positions
    CHECK(s.step(runs) == progress::blocked);
    s.send(2, layer, frame_kind::q);
    CHECK(s.step(runs) == progress::advanced);
    CHECK(s.step(runs) == progress::blocked);
    s.send(1, layer, frame_kind::kv);
    CHECK(s.step(runs) == progress::advanced);
    CHECK(s.take_output() == 1 * kv_heads * dim * 2);
    CHECK(s.step(runs) == progress::blocked);
    CHECK_FALSE(s.take_output());
    s.send(2, layer, frame_kind::kv);
    CHECK(s.step(runs) == (layer + 1 < layers ? progress::advanced : progress::done));
    CHECK(s.take_output() == 2 * kv_heads * dim * 2);
  }
}

TEST_CASE(
    "L-M15 a shard attends to old positions before K and V are there, and answers with them") {
  shard s{1};
  attention_runner runs{s.cache, s.memory->ops(), s.launch(1), {{s.forth.from, s.back.to}}};
  for (uint32_t layer = 0; layer < layers; ++layer) {
    CAPTURE(layer);
    CHECK(s.step(runs) == progress::blocked);
    s.send(3, layer, frame_kind::q);
    CHECK(s.step(runs) == progress::advanced); // its old positions
    CHECK(s.step(runs) == progress::blocked);
    CHECK_FALSE(s.take_output());
    s.send(3, layer, frame_kind::kv);
    CHECK(s.step(runs) == (layer + 1 < layers ? progress::advanced : progress::done));
    CHECK(s.take_output() == 3 * kv_heads * dim * 2);
  }
}

TEST_CASE("V-M08 a replica may be ahead of a shard by a layer with any number of mini-batches") {
  for (uint32_t parts : {1u, 2u, 3u}) {
    shard s{parts};
    attention_runner runs{s.cache, s.memory->ops(), s.launch(parts), {{s.forth.from, s.back.to}}};
    for (uint32_t layer = 0; layer < layers; ++layer)
      for (const auto kind : {frame_kind::q, frame_kind::kv})
        for (const auto& x : mini_batches(3, parts, true)) s.send(x.count, layer, kind);
    auto last = progress::advanced;
    while (last == progress::advanced) last = s.step(runs);
    CHECK(last == progress::done);
    for (uint32_t i = 0; i < layers * parts; ++i) CHECK(s.take_output());
    CHECK_FALSE(s.take_output());
  }
}

} // namespace lamella::gpu::test
