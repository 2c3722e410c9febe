// When a move stops to chase what is decoded meanwhile.
#include "scheduler/kv/kv_move_chase.hpp"

#include <doctest/doctest.h>

namespace lamella::scheduler::test {

using state = kv_move_chase::state;

TEST_CASE("L-M03 one pair of tables is near when a piece finds as much as the one before") {
  kv_move_chase chase;
  CHECK(chase.look(0, 0, 1000, 100) == state::on);
  CHECK(chase.look(0, 0, 900, 100) == state::on);
  CHECK(chase.look(0, 0, 40, 100) == state::on);
  CHECK(chase.look(0, 0, 40, 100) == state::near);
}

TEST_CASE("L-M03 pairs of tables that all get rows between two pieces are near") {
  kv_move_chase chase;
  uint32_t pieces = 0;
  for (uint64_t left = 600;; ++pieces) {
    REQUIRE(pieces < 20);
    const auto now = chase.look(pieces % 3, 5, left, 200);
    if (now == state::near) break;
    CHECK(now == state::on);
    left = left > 30 ? left - 200 + 10 : 30; // a piece is copied, and each table gets rows
  }
  CHECK(pieces >= 3);
}

TEST_CASE("L-M03 a copy that is slower than decoding is given up, however long it lasts") {
  kv_move_chase chase;
  uint64_t left = 100'000;
  uint32_t pieces = 0;
  state now = state::on;
  for (; now == state::on; ++pieces) {
    REQUIRE(pieces < 1'000);
    now = chase.look(pieces % 2, 0, left, 100);
    left += 7;
  }
  CHECK(now == state::behind);
  CHECK(pieces > 32); // one prompt that commits much at once is no reason
}

} // namespace lamella::scheduler::test
