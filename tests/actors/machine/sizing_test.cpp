// How much of a machine a service uses.
#include "actors/machine/sizing.hpp"
#include "config/options.hpp"
#include "gpu/kernels/operators.hpp"
#include "scheduler/cell_tables.hpp"
#include "scheduler/limits.hpp"

#include <doctest/doctest.h>

namespace lamella::actors::test {

TEST_CASE("devices keep sampled tokens of as many seats as a batch and its prompts may have") {
  const auto* most = config::find_option("batching.max_batch");
  REQUIRE(most != nullptr);
  CHECK(most->maximum + scheduler::limits::prompts_begun <= gpu::seats_max);
}

TEST_CASE("L-M23 L-M24 a cell by requests has a table of all heads for each member") {
  config::settings x;
  x.pools.attention.kv_bytes = 6 << 20;
  auto& east = x.pools.attention.cells["east"] = x.pools.attention;
  east.members = 3;
  auto& west = x.pools.attention.cells["west"] = x.pools.attention;
  west.members = 2;
  west.partition = config::partition::requests;
  model::model_spec spec;
  spec.layers = 2;
  spec.kv_heads = 3;
  spec.head_dim = 64;
  const auto layout = layout_of(x, spec, 0);
  const auto one = static_cast<uint32_t>((6 << 20) / token_bytes(x, spec));
  CHECK(layout.slots_of(0) / 3 == one); // three members' memory for one table
  constexpr auto apart = scheduler::cells_max;
  REQUIRE(layout.tables() == 1 + 2 * apart + 1);
  CHECK(layout.members() == 5);
  for (const uint32_t table : {1 + apart, 1 + 2 * apart}) {
    CHECK(layout.cells[table].members == 1);
    CHECK(layout.slots_of(table) == one);
    CHECK(&settings_of_cell(x, table) == &west);
  }
  CHECK(&settings_of_cell(x, 2) == &x.pools.attention); // a number that no table has
  CHECK(layout.slots() == layout.slots_of(0) + 2 * one);
  const auto shape = shape_of(x);
  CHECK(shape.cells == std::vector<uint32_t>{3, 2});
  CHECK(shape.by_requests == std::vector<uint32_t>{1});
}

TEST_CASE("Weights and KV that the memory cannot hold are refused, where they lie in it") {
  const auto limit = memory_limit();
  config::settings x;
  constexpr uint32_t slots = 1000;
  const scheduler::kv_layout layout{{{1, slots}}};
  const auto why = [&](uint64_t weights, uint64_t kv) {
    return why_too_large(x, weights, kv / slots, layout);
  };
  CHECK(why(limit / 4, limit / 4).empty());
  CHECK(why(limit + 1, 0).find(std::to_string(limit)) != std::string::npos);
  CHECK(why(limit / 4, limit).starts_with("the weights (" + std::to_string(limit / 4) + " bytes)"));
  x.pools.attention.device = "cuda:0";
  CHECK(why(limit / 4, limit / 4).empty());
  x.pools.attention.device = "auto";
  x.pools.attention.placement = config::placement::remote;
  CHECK(why(limit / 4, limit / 4).empty());
  // Nor do weights that lie elsewhere.
  x.pools.model.placement = config::placement::remote;
  CHECK(why(limit + 1, limit / 4).empty());
  x.pools.attention.placement = config::placement::local;
  CHECK(why(limit / 4, limit * 2).starts_with("the KV cache ("));
  x.pools.attention.placement = config::placement::remote;
  x.pools.model.placement = config::placement::local;
  CHECK_FALSE(why(limit + 1, 0).empty());
  x.pools.model.device = "cuda:0";
  CHECK(why(limit + 1, limit / 4).empty());
}

TEST_CASE("L-M26 the member with parity needs memory as the others do") {
  const auto limit = memory_limit();
  constexpr uint32_t slots = 1000;
  const auto token = limit / slots / 4 * 3;
  CHECK(why_too_large({}, 0, token, {{{2, slots, false}}}).empty());
  CHECK_FALSE(why_too_large({}, 0, token, {{{2, slots, true}}}).empty()); // 3/2 as much
  CHECK(stored_bytes({{{2, slots, true}, {0, slots, true}}}, 0, 6) == 9 * slots);
  CHECK(stored_bytes({{{2, slots, true}, {0, slots, true}}}, 1, 6) == 0);
}

TEST_CASE("KV of more slots than a table can have is refused with the bytes that were asked for") {
  config::settings x;
  x.kv.bytes = uint64_t{1} << 46;
  const scheduler::kv_layout layout{{{2, 1u << 30, true}}};
  CHECK(why_too_large(x, 0, 6, layout)
            .starts_with("the KV cache (" + std::to_string(3 * *x.kv.bytes) + " bytes)"));
}

TEST_CASE("KV of a cell on other hosts needs no memory of this one") {
  const auto limit = memory_limit();
  config::settings x;
  auto& cells = x.pools.attention.cells;
  cells["far"].placement = config::placement::remote;
  cells["near"];
  CHECK(why_too_large(x, 0, limit / 1000, {{{1, 2000}, {1, 900}}}).empty());
  CHECK_FALSE(why_too_large(x, 0, limit / 1000, {{{1, 900}, {1, 2000}}}).empty());
}

} // namespace lamella::actors::test
