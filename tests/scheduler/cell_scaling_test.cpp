#include "scheduler/cell_scaling.hpp"

#include <doctest/doctest.h>

#include <vector>

using namespace lamella::scheduler;

TEST_CASE("L-M19 L-M24 sizes of a cell go over the divisors of the KV heads, and to none") {
  CHECK(next_cell_size(0, 8, true) == 1);
  CHECK(next_cell_size(1, 8, true) == 2);
  CHECK(next_cell_size(2, 8, true) == 4);
  CHECK(next_cell_size(8, 8, true) == 8);
  CHECK(next_cell_size(3, 3, false) == 1);
  CHECK(next_cell_size(1, 3, false) == 0);
  CHECK(next_cell_size(0, 3, false) == 0);
}

TEST_CASE("L-M19 of a pool that grows the fullest cell does, of one that shrinks the emptiest") {
  const std::vector<cell_look> cells{{1, 100, 50}, {2, 200, 180}, {0, 0, 0}};
  const auto up = step_of_cells(cells, 8, true, 1, 8);
  REQUIRE(up);
  CHECK(up->cell == 1);
  CHECK(up->members == 4);
  const auto down = step_of_cells(cells, 8, false, 1, 8);
  REQUIRE(down);
  CHECK(down->cell == 0);
  CHECK(down->members == 0);
  // What is too much for the fullest one may fit another one.
  const auto next = step_of_cells(cells, 8, true, 1, 4);
  REQUIRE(next);
  CHECK(next->cell == 0);
  CHECK(next->members == 2);
}

TEST_CASE("L-M19 an empty cell grows last, and a pool keeps its least members") {
  const std::vector<cell_look> full{{3, 300, 290}, {0, 0, 0}};
  const auto up = step_of_cells(full, 3, true, 1, 8);
  REQUIRE(up);
  CHECK(up->cell == 1);
  CHECK(up->members == 1);
  CHECK_FALSE(step_of_cells(std::vector<cell_look>{{1, 10, 0}}, 3, false, 1, 8));
  CHECK_FALSE(step_of_cells(std::vector<cell_look>{{1, 10, 0}, {1, 10, 0}}, 3, false, 2, 8));
  CHECK_FALSE(step_of_cells(full, 3, true, 1, 3));
}

TEST_CASE("L-M19 a pool beyond its bounds comes back step by step, and never leaves them") {
  std::vector<cell_look> cells{{3, 300, 200}, {3, 300, 100}};
  for (auto& x : cells) x.by_requests = true;
  for (uint32_t members = 6; members > 3; --members) { // its bound fell to 3
    const auto down = step_of_cells(cells, 3, false, 1, 3);
    REQUIRE(down);
    cells[down->cell].members = down->members;
  }
  CHECK_FALSE(step_of_cells(cells, 3, true, 1, 3));
  for (uint32_t members = 3; members < 5; ++members) { // its bound rose to 5
    const auto up = step_of_cells(cells, 3, true, 5, 8);
    REQUIRE(up);
    cells[up->cell].members = up->members;
  }
  CHECK_FALSE(step_of_cells(cells, 3, false, 5, 8));
}

TEST_CASE("L-M19 L-M24 a cell by requests takes steps of one member, down to none") {
  std::vector<cell_look> cells{{3, 300, 290}, {1, 100, 10}};
  for (auto& x : cells) x.by_requests = true;
  const auto up = step_of_cells(cells, 3, true, 1, 8);
  REQUIRE(up);
  CHECK(up->cell == 0);
  CHECK(up->members == 4);
  const auto down = step_of_cells(cells, 3, false, 1, 8);
  REQUIRE(down);
  CHECK(down->cell == 1);
  CHECK(down->members == 0);
  CHECK_FALSE(step_of_cells(std::vector<cell_look>(1, cells[1]), 3, false, 1, 8));
  cells[1].members = 0; // it has none to lose
  CHECK(step_of_cells(cells, 3, false, 1, 8)->members == 2);
}

TEST_CASE("L-M19 a cell stays within bounds of its own, and another one takes the step") {
  std::vector<cell_look> cells{{1, 100, 90}, {1, 100, 10}};
  cells[0].most = 2; // of 3 heads the next size is 3
  const auto up = step_of_cells(cells, 3, true, 1, 8);
  REQUIRE(up);
  CHECK(up->cell == 1);
  CHECK(up->members == 3);
  cells[1].most = 1;
  CHECK_FALSE(step_of_cells(cells, 3, true, 1, 8));
  cells[1].least = 1;
  const auto down = step_of_cells(cells, 3, false, 1, 8);
  REQUIRE(down);
  CHECK(down->cell == 0);
  CHECK(down->members == 0);
  cells[0].least = 1;
  CHECK_FALSE(step_of_cells(cells, 3, false, 1, 8));
}

TEST_CASE("L-M19 a cell that is not configured any more keeps its size") {
  std::vector<cell_look> cells{{.members = 1, .slots = 10, .used = 9, .stays = true},
                               {.members = 1, .slots = 10, .used = 1}};
  const auto up = step_of_cells(cells, 4, true, 1, 8), down = step_of_cells(cells, 4, false, 1, 8);
  REQUIRE(up);
  CHECK(up->cell == 1);
  REQUIRE(down);
  CHECK(down->cell == 1);
  cells[1].stays = true;
  CHECK_FALSE(step_of_cells(cells, 4, true, 1, 8));
}

TEST_CASE("L-M19 a cell that cannot take a step leaves it to the next one") {
  const std::vector<cell_look> cells{{1, 100, 90}, {1, 100, 10}, {1, 100, 50}};
  const auto but = [](size_t cell) {
    return [cell](const cell_step& x) { return x.cell != cell; };
  };
  CHECK(step_of_cells(cells, 3, false, 1, 9, but(1))->cell == 2);
  CHECK(step_of_cells(cells, 3, true, 1, 9, but(0))->cell == 2);
  CHECK_FALSE(step_of_cells(cells, 3, true, 1, 9, [](const cell_step&) { return false; }));
}
