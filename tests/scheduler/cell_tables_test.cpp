// Which slot tables are those of cells by heads and by requests, and what another cut makes of
// them.
#include "scheduler/cell_tables.hpp"
#include "scheduler/kv_layout.hpp"
#include "scheduler/membership/pool_layout.hpp"

#include <doctest/doctest.h>

#include <map>

namespace lamella::scheduler::test {

namespace {

kv_layout layout_of(const std::vector<uint32_t>& cells, const std::vector<uint32_t>& by_requests) {
  kv_layout x;
  for (const auto members : members_of_tables(cells, by_requests)) x.cells.push_back({members, 9});
  return x;
}

/// Members of the tables that have some.
using in_use = std::map<uint32_t, uint32_t>;

in_use tables_in_use(const std::vector<uint32_t>& tables) {
  in_use result;
  for (uint32_t i = 0; i < tables.size(); ++i)
    if (tables[i] > 0) result[i] = tables[i];
  return result;
}

} // namespace

TEST_CASE("L-M23 L-M24 a cell by heads has one table, one by requests a table for each member") {
  CHECK(members_of_tables({3, 1}, {}) == std::vector<uint32_t>{3, 1});
  CHECK(tables_in_use(members_of_tables({3, 2}, {1}))
        == in_use{{0, 3}, {1 + cells_max, 1}, {1 + 2 * cells_max, 1}});
  CHECK(tables_in_use(members_of_tables({2, 1}, {0, 1}))
        == in_use{{cells_max, 1}, {1 + cells_max, 1}, {2 * cells_max, 1}});
  CHECK(tables_in_use(members_of_tables({2, 0}, {0, 1}))
        == in_use{{cells_max, 1}, {2 * cells_max, 1}});
  CHECK(members_of_tables({}, {}).empty());
}

TEST_CASE("L-M24 every member of every cell has its place in one of the tables of the cell") {
  const std::vector<uint32_t> cells{3, 0, 2, 4};
  for (uint32_t cut = 0; cut < 16; ++cut) {
    std::vector<uint32_t> by_requests;
    for (uint32_t i = 0; i < 4; ++i)
      if ((cut >> i & 1) != 0) by_requests.push_back(i);
    const auto tables = members_of_tables(cells, by_requests);
    std::map<uint32_t, uint32_t> members;
    for (uint32_t t = 0; t < tables.size(); ++t) {
      const auto cell = cell_of_table(t, cells.size());
      members[cell] += tables[t];
      if (tables[t] > 0 && t >= cells_max) CHECK(place_of_table(t, cells.size()) < cells[cell]);
    }
    for (uint32_t i = 0; i < 4; ++i) CHECK(members[i] == cells[i]);
  }
  CHECK(cell_of_table(5, 0) == 0); // a pool without names is one cell
}

TEST_CASE("L-M03 a cell keeps its tables whatever the others become, and gets new ones by a cut") {
  const auto before = layout_of({2, 2}, {1}), more = layout_of({2, 3}, {1});
  // Member 0, 1: the cell by heads; 2, 3: the tables of the other one.
  CHECK(members_before(before, more) == std::vector<uint32_t>{0, 1, 2, 3, 4});
  CHECK(members_before(before, layout_of({0, 2}, {1})) == std::vector<uint32_t>{2, 3});
  // Who had a part of a cell that is cut otherwise has none of its new ones.
  CHECK(members_before(before, layout_of({2, 2}, {})) == std::vector<uint32_t>{0, 1, 4, 4});
  CHECK(members_before(before, layout_of({2, 2}, {0, 1})) == std::vector<uint32_t>{4, 2, 4, 3});
}

TEST_CASE("L-M03 cells keep their tables when others come") {
  const auto before = layout_of({2, 2}, {1}), more = layout_of({2, 2, 3, 1}, {1, 3});
  // Of the new ones that by heads is numbered before the tables by requests.
  CHECK(members_before(before, more) == std::vector<uint32_t>{0, 1, 4, 4, 4, 2, 4, 3});
  for (uint32_t i = 0; i < before.tables(); ++i)
    if (before.in_use(i)) CHECK(more.cells[i] == before.cells[i]);
}

TEST_CASE("L-M03 shards are numbered through the tables, and sit on the seats of their cell") {
  epoch_shape shape;
  shape.cells = {2, 2};
  shape.shards = 4;
  shape.cell_seats = {"", "far"};
  shape.by_requests = {0};
  const auto layout = layout_of(shape.cells, shape.by_requests);
  for (uint32_t i = 0; i < shape.shards; ++i) {
    const auto cell = cell_of_table(layout.cell_of(i), shape.cells.size());
    CHECK(group_of_shard(shape, i).cell == shape.cell_seats[cell]);
  }
  CHECK(group_of_shard(shape, 0).cell == "far"); // table 1; those of cell 0 are 2 and 4
}

TEST_CASE("L-M03 the cut of a cell is a part of the sizes that a change asks for") {
  const pool_sizes x{1, 4, 0, {2, 2}};
  const auto cut = with_cut(x, 1, true);
  CHECK(cut != x);
  CHECK(is_by_requests(cut, 1));
  CHECK_FALSE(is_by_requests(cut, 0));
  CHECK(with_cut(with_cut(x, 1, true), 0, true) == with_cut(with_cut(x, 0, true), 1, true));
  CHECK(with_cut(cut, 1, true) == cut);
  CHECK(with_cut(cut, 1, false) == x);
}

} // namespace lamella::scheduler::test
