// Whose workers can replace each other.
#include "actors/machine/seat_groups.hpp"
#include "actors/machine/sizing.hpp"
#include "actors/worker/seat_devices.hpp"

#include <doctest/doctest.h>

namespace lamella::actors::test {

using config::placement;
using scheduler::seat_group;
using scheduler::worker_role;

namespace {

/// Cells a and c are as the pool says, b and d have workers of their own.
config::settings four_cells() {
  config::settings x;
  auto& pool = x.pools.attention;
  pool.placement = placement::local;
  pool.spares = 1;
  for (const char* name : {"a", "b", "c", "d"}) pool.cells[name] = pool;
  pool.cells["a"].members = 2;
  pool.cells["b"].placement = pool.cells["d"].placement = placement::remote;
  pool.cells["b"].spares = 0;
  pool.cells["c"].spares = 3;
  pool.cells["d"].spares = 2;
  pool.cells["d"].members = 4;
  return x;
}

} // namespace

TEST_CASE(
    "L-M03 cells with a device, a placement or threads of their own have seats of their own") {
  auto x = four_cells();
  const seat_group model{worker_role::model}, pool{worker_role::attention},
      b{worker_role::attention, "b"};
  CHECK(seat_groups(x) == std::vector{model, pool, b});
  CHECK(cell_seats(x) == std::vector<std::string>{"", "b", "", "b"});
  CHECK(members_needed(x, pool) == 3);
  CHECK(members_needed(x, b) == 5);
  CHECK(spares_of(x, pool) == 3);
  CHECK(spares_of(x, b) == 2);
  CHECK(pool_of(x, pool).placement == placement::local);
  CHECK(pool_of(x, b).placement == placement::remote);
  CHECK(shape_of(x).cell_seats == cell_seats(x));
  CHECK_FALSE(is_in_process(x, worker_role::attention));
  CHECK(is_in_process(x, worker_role::model));
  for (auto& [name, cell] : x.pools.attention.cells) cell.spares = 0;
  CHECK(spares_of(x, pool) == 0); // what the pool says is for cells that say nothing
  x.pools.attention.cells["d"].threads = 2;
  CHECK(cell_seats(x) == std::vector<std::string>{"", "b", "", "d"});
  // Without a cell like it, the pool around them has no seats.
  x.pools.attention.cells.erase("a");
  x.pools.attention.cells.erase("c");
  CHECK(seat_groups(x) == std::vector{model, b, seat_group{worker_role::attention, "d"}});
  x.pools.attention.cells.clear();
  CHECK(seat_groups(x) == std::vector{model, pool});
}

TEST_CASE("L-M03 child processes of a cell take CUDA devices up to the next cell's first") {
  config::settings x;
  auto& pool = x.pools.attention;
  pool.placement = placement::local;
  pool.device = "cuda:1";
  for (const char* name : {"a", "b"}) pool.cells[name] = pool;
  pool.cells["b"].device = "cuda:3";
  const auto eight = [] { return 8u; };
  const auto on = [&](uint32_t place, const char* cell) {
    return device_of(x, {worker_role::attention, cell}, place, eight);
  };
  CHECK(on(0, "") == "cuda:1");
  CHECK(on(1, "") == "cuda:2");
  CHECK(on(2, "") == "cuda:1");
  CHECK(device_shares(x, {worker_role::attention, "b"}, 8) == 5);
  CHECK(on(0, "b") == "cuda:3");
  CHECK(on(1, "b") == "cuda:4");
}

} // namespace lamella::actors::test
