#include "base/team.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <memory>
#include <vector>

using lamella::team;

TEST_CASE("a team calls every index exactly once, whatever its size and the count") {
  for (unsigned size : {1u, 2u, 3u, 8u}) {
    team workers{size};
    CHECK(workers.size() == size);
    for (size_t count : {0u, 1u, 2u, 7u, 17u, 1000u}) {
      std::vector<std::atomic<int>> calls(count);
      workers.for_each(count, [&](size_t i) { calls[i].fetch_add(1); });
      for (auto& c : calls) REQUIRE(c.load() == 1);
    }
  }
}

TEST_CASE("many short loops in a row see each other's writes") {
  team workers{3};
  constexpr size_t loops = 20000;
  std::vector<uint64_t> values(5, 0);
  for (size_t loop = 0; loop < loops; ++loop)
    workers.for_each(values.size(), [&](size_t i) { values[i] += i + 1; });
  for (size_t i = 0; i < values.size(); ++i) CHECK(values[i] == loops * (i + 1));
}

TEST_CASE("a thread that comes late takes no index of a loop that is over") {
  // Each loop has its own context, destroyed right after it: a late call would touch freed memory
  // (seen by the address sanitizer) or raise the count of the next loop.
  team workers{4};
  for (size_t loop = 0; loop < 5000; ++loop) {
    auto sum = std::make_unique<std::atomic<size_t>>(0);
    auto count = loop % 4 + 1;
    workers.for_each(count, [&](size_t i) { sum->fetch_add(i + 1); });
    REQUIRE(sum->load() == count * (count + 1) / 2);
  }
}
