#include "scheduler/parity_ledger.hpp"

#include <doctest/doctest.h>

using namespace lamella::scheduler;

namespace {

using members = std::vector<uint32_t>;

/// Three shards and their parity, all of which have begun empty.
parity_ledger begun() {
  parity_ledger x{3};
  CHECK_FALSE(x.open(1, {0, 1, 2, 3}, true));
  CHECK(x.begin().lost == members{0, 1, 2});
  return x;
}

} // namespace

TEST_CASE("L-M26 one lost shard is rebuilt, and then nothing is lost") {
  for (uint32_t member = 0; member < 3; ++member) {
    auto x = begun();
    CHECK(x.open(2, {member}, true) == member);
    CHECK(x.rebuilt(2));
    const auto second = x.begin();
    CHECK(second.lost.empty());
    CHECK(second.rebuilt);
    CHECK_FALSE(second.parity_is_new);
    CHECK_FALSE(x.open(3, {}, true));
    CHECK_FALSE(x.begin().rebuilt);
  }
}

TEST_CASE("L-M26 a lost parity holds nobody up, and is new when the epoch serves") {
  auto x = begun();
  CHECK_FALSE(x.open(2, {3}, true));
  // The epoch never served: the next one's is as new.
  CHECK_FALSE(x.open(3, {}, true));
  const auto third = x.begin();
  CHECK(third.lost.empty());
  CHECK(third.parity_is_new);
  CHECK_FALSE(third.rebuilt);
  // From now on it is the slot tables that know what it lacks.
  CHECK(x.open(4, {0}, true) == 0);
  x.rebuilt(4);
  const auto fourth = x.begin();
  CHECK(fourth.rebuilt);
  CHECK_FALSE(fourth.parity_is_new);
}

TEST_CASE("L-M26 a rebuild in an epoch that never served is told by the next one that does") {
  auto x = begun();
  CHECK(x.open(2, {1}, true) == 1);
  x.rebuilt(2);
  CHECK_FALSE(x.open(3, {}, true));
  CHECK(x.begin().rebuilt);
}

TEST_CASE("L-M26 two lost members are lost, and protected again from then on") {
  auto x = begun();
  CHECK_FALSE(x.open(2, {0, 2}, true));
  CHECK(x.begin().lost == members{0, 2});
  CHECK(x.open(3, {1}, true) == 1);
  auto with_parity = begun();
  CHECK_FALSE(with_parity.open(2, {1, 3}, true));
  const auto after = with_parity.begin();
  CHECK(after.lost == members{1});
  CHECK_FALSE(after.parity_is_new); // nothing that was written before is used again
}

TEST_CASE("L-M26 a rebuild that was not finished is still due, and with another loss too late") {
  auto x = begun();
  CHECK(x.open(2, {1}, true) == 1);
  CHECK(x.open(3, {}, true) == 1); // the worker says that it has kept what it has
  CHECK_FALSE(x.open(4, {2}, true));
  CHECK(x.begin().lost == members{1, 2});
  auto failed = begun();
  CHECK(failed.open(2, {1}, true) == 1);
  CHECK(failed.begin().lost == members{1});
  CHECK_FALSE(failed.open(3, {}, true));
}

TEST_CASE("L-M26 the end of an older rebuild says nothing about the member that is there now") {
  auto x = begun();
  CHECK(x.open(2, {1}, true) == 1);
  CHECK(x.open(3, {1}, true) == 1);
  CHECK_FALSE(x.rebuilt(2));
  CHECK(x.begin().lost == members{1});
}

TEST_CASE(
    "L-M26 what is written without the parity has none, whoever comes back with an older one") {
  auto x = begun();
  CHECK_FALSE(x.open(2, {}, false));
  const auto second = x.begin();
  CHECK(second.lost.empty());
  CHECK_FALSE(second.parity_is_new);
  CHECK_FALSE(x.open(3, {}, true));
  CHECK(x.begin().parity_is_new);
  CHECK(x.open(4, {0}, true) == 0);
  auto both = begun();
  CHECK_FALSE(both.open(2, {0}, false));
  CHECK(both.begin().lost == members{0});
  CHECK_FALSE(both.open(3, {2}, true)); // the parity was away when shard 2 wrote
  CHECK(both.begin().lost == members{2});
  CHECK_FALSE(both.open(4, {}, true));
}

TEST_CASE("A5 a rebuild goes on where another loss has interrupted it, in the same memory alone") {
  using runs = std::vector<slot_run>;
  parity_ledger x{3, 100};
  x.open(1, {0, 1, 2, 3}, true);
  x.begin();
  const runs all{{10, 20}, {50, 10}};
  REQUIRE(x.open(2, {1}, true) == 1u);
  CHECK(x.left(7, all) == all);
  x.made(7, runs{{10, 15}});
  // A replica is lost: the epoch never serves.
  REQUIRE(x.open(3, {1}, true) == 1u);
  CHECK(x.left(7, all) == runs{{25, 5}, {50, 10}});
  x.made(7, runs{{25, 5}});
  SUBCASE("the same worker") { CHECK(x.left(7, all) == runs{{50, 10}}); }
  SUBCASE("another worker, or another memory") {
    CHECK(x.left(8, all) == all);
    x.made(7, runs{{50, 10}}); // late
    CHECK(x.left(8, all) == all);
    CHECK(x.left(7, all) == all); // it has been away
  }
  SUBCASE("an epoch has served meanwhile") {
    CHECK(x.rebuilt(3));
    x.begin();
    REQUIRE(x.open(4, {1}, true) == 1u);
    CHECK(x.left(7, all) == all);
  }
}
