// Cells: which member stores which heads, and who it was in another layout.
#include "scheduler/kv_layout.hpp"

#include <doctest/doctest.h>

#include <set>

namespace lamella::scheduler::test {

TEST_CASE("L-M03 L-M23 every head of every cell has one member; numbers go through all cells") {
  const kv_layout x{{{2, 100}, {0, 50}, {3, 70}}};
  CHECK(x.members() == 5);
  CHECK(x.tables() == 3);
  CHECK(x.slots() == 170);
  CHECK(x.largest() == 100);
  CHECK(x.smallest() == 70);
  CHECK(x.fewest() == 2);
  CHECK_FALSE(x.in_use(1));
  CHECK(x.slots_of(1) == 0);
  CHECK(x.slots_of(7) == 0);
  CHECK(x.first_of(2) == 2);
  std::set<std::pair<uint32_t, uint32_t>> heads; // cell and head
  for (uint32_t i = 0; i < x.members(); ++i) {
    const auto part = x.part(6, i);
    CHECK(part.table == x.cell_of(i));
    CHECK(part.slots == x.cells[part.table].slots);
    CHECK_FALSE(part.parity);
    for (uint32_t h = 0; h < part.heads; ++h)
      CHECK(heads.emplace(part.table, part.first_head + h).second);
  }
  CHECK(heads.size() == 12);
  CHECK(x.cell_of(1) == 0);
  CHECK(x.cell_of(2) == 2);
}

TEST_CASE("The parity has as many heads as a member, and its number comes last") {
  const kv_layout x{{{3, 100, true}}};
  CHECK(x.part(6, 2) == kv_part{4, 2, 0, 100, false});
  CHECK(x.part(6, 3) == kv_part{0, 2, 0, 100, true});
}

TEST_CASE("L-M24 cells whose members cannot share the heads are refused, and pools without any") {
  CHECK_FALSE(refuse_layout(6, {{{2, 1}, {0, 1}, {3, 1}}}));
  CHECK(refuse_layout(6, {{{2, 1}, {4, 1}}})->find("4 attention members") != std::string::npos);
  CHECK(refuse_layout(6, {{{0, 1}}}));
  CHECK(refuse_layout(6, {}));
}

TEST_CASE("L-M03 a member of a cell keeps its place when another cell changes its size") {
  const kv_layout before{{{1, 9}, {2, 9, true}}}, now{{{3, 9, true}, {2, 9, true}}};
  // Its own first member, two new ones, and those of the second cell; then the parity of each: the
  // first had none.
  CHECK(members_before(before, now) == std::vector<uint32_t>{0, 4, 4, 1, 2, 4, 3});
  CHECK(members_before(now, before) == std::vector<uint32_t>{0, 3, 4, 6});
  CHECK(members_before({}, {{{2, 9, true}}}) == std::vector<uint32_t>{0, 0, 0});
}

TEST_CASE("A6 cells with parity have a member each behind all others, in the order of the cells") {
  const kv_layout x{{{2, 100, true}, {3, 50}, {0, 0, true}, {1, 20, true}}};
  CHECK(x.members() == 6);
  CHECK(x.all() == 8);
  CHECK(x.parity_cells() == std::vector<uint32_t>{0, 3}); // a cell that is not in use has none
  CHECK(x.holder_of(0) == 6);
  CHECK(x.holder_of(3) == 7);
  CHECK(x.cell_of(6) == 0);
  CHECK(x.cell_of(7) == 3);
  CHECK(x.members_of(0) == std::vector<uint32_t>{0, 1, 6});
  CHECK(x.members_of(1) == std::vector<uint32_t>{2, 3, 4});
  CHECK(x.members_of(3) == std::vector<uint32_t>{5, 7});
  CHECK(x.part(6, 6) == kv_part{0, 3, 0, 100, true});
  CHECK(x.part(6, 7) == kv_part{0, 6, 3, 20, true}); // of one member: the same bytes again
  CHECK_FALSE(x.has_parity(1));
  CHECK(x.with_parity({1}).members_of(1) == std::vector<uint32_t>{2, 3, 4, 6});
}

} // namespace lamella::scheduler::test
