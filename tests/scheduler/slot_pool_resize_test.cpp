#include "scheduler/slot_pool.hpp"

#include "tests/random.hpp"

#include <doctest/doctest.h>

#include <stdexcept>

namespace lamella::scheduler {

using runs = std::vector<slot_run>;

TEST_CASE("V-M11 a pool that grows has the further slots free") {
  slot_pool pool{20};
  REQUIRE(pool.take(20));
  pool.resize(50);
  CHECK(pool.slots() == 50);
  CHECK(pool.free() == 30);
  CHECK(pool.take(30) == runs{{20, 30}});
  CHECK_FALSE(pool.take(1));
}

TEST_CASE("V-M11 a pool shrinks by free slots alone") {
  slot_pool pool{40};
  const auto held = pool.take(10);
  REQUIRE(held == runs{{0, 10}});
  pool.resize(25);
  CHECK(pool.slots() == 25);
  CHECK(pool.free() == 15);
  CHECK_THROWS_AS(pool.resize(5), std::logic_error);
  slot_pool other{40};
  CHECK(other.take_from(30) == runs{{30, 10}}); // from the middle of a free run on
  CHECK(other.free() == 30);
  CHECK(other.references(29) == 0);
  CHECK(other.references(30) == 1);
}

TEST_CASE("V-M11 a pool tells which slots became free, whatever is taken again meanwhile") {
  slot_pool pool{40};
  const auto a = pool.take(8), b = pool.take(8);
  pool.watch_freed(true);
  CHECK(pool.take_freed().empty());
  pool.share(*b);
  pool.give_back(*a);
  pool.give_back(*b);         // another reference is left
  REQUIRE(pool.take(8) == a); // the last that was freed
  CHECK(pool.take_freed() == *a);
  CHECK(pool.take_freed().empty());
}

TEST_CASE("V-M11 seeds of growing, shrinking, taking and giving back: the counts add up") {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    CAPTURE(seed);
    tests::splitmix dice{seed};
    slot_pool pool{32};
    std::vector<runs> held;
    for (int step = 0; step < 200; ++step) {
      const auto kind = dice.below(4);
      if (kind < 2) {
        if (auto x = pool.take(1 + static_cast<uint32_t>(dice.below(12)))) held.push_back(*x);
      } else if (kind == 2 && !held.empty()) {
        const auto which = static_cast<ptrdiff_t>(dice.below(held.size()));
        pool.give_back(held[static_cast<size_t>(which)]);
        held.erase(held.begin() + which);
      } else {
        uint32_t end = 1;
        for (const auto& x : held)
          for (const auto& run : x) end = std::max(end, run.first + run.length);
        pool.resize(end + static_cast<uint32_t>(dice.below(40)));
      }
      uint32_t used = 0;
      for (const auto& x : held) used += length_of(x);
      const auto counted = pool.count();
      REQUIRE(counted.used == used);
      REQUIRE(counted.free == pool.free());
      REQUIRE(pool.free() + used == pool.slots());
    }
  }
}

} // namespace lamella::scheduler
