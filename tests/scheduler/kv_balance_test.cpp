// Which sequences change their table so that all tables have about as much KV.
#include "scheduler/kv_balance.hpp"

#include <doctest/doctest.h>

#include <random>

namespace lamella::scheduler::test {

namespace {

using groups = std::vector<kv_group>;
using tables = std::vector<uint32_t>;

/// Of so many slots each.
tables equal(uint32_t count, uint32_t slots) { return tables(count, slots); }

std::vector<uint64_t> loads(const groups& all, const tables& at, uint32_t count) {
  std::vector<uint64_t> result(count);
  for (size_t i = 0; i < all.size(); ++i) result[at[i]] += all[i].slots;
  return result;
}

} // namespace

TEST_CASE("L-M03 a new table gets a share, and no more moves than must") {
  CHECK(balanced({{0, 100}, {0, 100}}, equal(2, 1000)) == tables{1, 0});
  CHECK(balanced({{0, 100}, {1, 95}}, equal(2, 1000)) == tables{0, 1}); // within a tenth
  CHECK(balanced({{0, 100}}, equal(2, 1000)) == tables{0});             // it would turn them round
  CHECK(balanced({}, equal(3, 1000)).empty());
  CHECK(balanced({{0, 300}, {0, 100}, {0, 100}, {0, 100}}, equal(2, 1000)) == tables{1, 0, 0, 0});
  CHECK(balanced({{0, 0}, {0, 0}}, equal(2, 1000)) == tables{0, 0});
}

TEST_CASE("L-M03 tables of unequal size get equal shares of themselves") {
  groups all(40, {0, 10});
  const auto to = balanced(all, {1000, 3000});
  CHECK(loads(all, to, 2) == std::vector<uint64_t>{100, 300});
  // Without a new table nothing that can stay moves.
  CHECK(balanced(all, {1000, 3000}, false) == tables(40, 0));
}

TEST_CASE("L-M03 groups of a table that goes are spread, the largest where most room is") {
  const groups all{{0, 10}, {1, 60}, {1, 30}, {2, 50}};
  CHECK(balanced(all, {100, 0, 100}, false) == tables{0, 0, 2, 2});
  CHECK(balanced({{1, 60}, {0, 70}}, {100, 0, 100}, false) == tables{2, 0});
  CHECK(balanced({{5, 60}, {0, 70}}, {100, 100}, false) == tables{1, 0}); // it is no more
  CHECK(balanced({{0, 5}}, {0, 0, 9}, false) == tables{2});
}

TEST_CASE("L-M03 a group goes nowhere where it has no room") {
  CHECK(balanced({{0, 60}, {0, 60}, {1, 10}}, equal(2, 65)) == tables{0, 0, 1});
}

TEST_CASE("L-M03 many sequences end within a tenth of each other, each moved once at most") {
  std::mt19937 random{7};
  for (int round = 0; round < 200; ++round) {
    CAPTURE(round);
    const auto count = 2 + random() % 6;
    groups all;
    for (int i = 0; i < 200; ++i)
      all.push_back({static_cast<uint32_t>(random() % (count - 1)),
                     static_cast<uint32_t>(1 + random() % 100)});
    const auto to = balanced(all, equal(static_cast<uint32_t>(count), 1 << 20));
    const auto load = loads(all, to, static_cast<uint32_t>(count));
    const auto [least, most] = std::ranges::minmax_element(load);
    uint64_t total = 0;
    for (const auto n : load) total += n;
    CHECK(static_cast<double>(*most - *least)
          <= balance_tolerance * static_cast<double>(total) / static_cast<double>(count));
  }
}

} // namespace lamella::scheduler::test
