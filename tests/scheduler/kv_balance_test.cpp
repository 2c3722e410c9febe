// Which sequences change their table so that all tables have about as much KV.
#include "scheduler/kv_balance.hpp"

#include <doctest/doctest.h>

#include <random>

namespace lamella::scheduler::test {

namespace {

using groups = std::vector<kv_group>;
using tables = std::vector<uint32_t>;

std::vector<uint64_t> loads(const groups& all, const tables& at, uint32_t count) {
  std::vector<uint64_t> result(count);
  for (size_t i = 0; i < all.size(); ++i) result[at[i]] += all[i].slots;
  return result;
}

} // namespace

TEST_CASE("L-M03 a new table gets a share, and no more moves than must") {
  CHECK(balanced({{0, 100}, {0, 100}}, 2, 1000) == tables{1, 0});
  CHECK(balanced({{0, 100}, {1, 95}}, 2, 1000) == tables{0, 1}); // within a tenth
  CHECK(balanced({{0, 100}}, 2, 1000) == tables{0});             // it would turn them round
  CHECK(balanced({}, 3, 1000).empty());
  CHECK(balanced({{0, 300}, {0, 100}, {0, 100}, {0, 100}}, 2, 1000) == tables{1, 0, 0, 0});
  CHECK(balanced({{0, 0}, {0, 0}}, 2, 1000) == tables{0, 0});
}

TEST_CASE("L-M03 a group goes nowhere where it has no room") {
  CHECK(balanced({{0, 60}, {0, 60}, {1, 10}}, 2, 65) == tables{0, 0, 1});
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
    const auto to = balanced(all, static_cast<uint32_t>(count), 1 << 20);
    const auto load = loads(all, to, static_cast<uint32_t>(count));
    const auto [least, most] = std::ranges::minmax_element(load);
    uint64_t total = 0;
    for (const auto n : load) total += n;
    CHECK(static_cast<double>(*most - *least)
          <= balance_tolerance * static_cast<double>(total) / static_cast<double>(count));
  }
}

} // namespace lamella::scheduler::test
