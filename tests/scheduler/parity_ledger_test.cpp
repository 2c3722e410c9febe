#include "scheduler/parity_ledger.hpp"

#include <doctest/doctest.h>

using namespace lamella::scheduler;

namespace {

using members = std::vector<uint32_t>;

/// Three shards and their parity, all of which have begun empty.
parity_ledger begun() {
  parity_ledger x{3};
  CHECK_FALSE(x.open(1, {0, 1, 2, 3}, true));
  CHECK(x.lost() == members{0, 1, 2});
  return x;
}

} // namespace

TEST_CASE("L-M26 one lost member is rebuilt, and then nothing is lost") {
  for (uint32_t member = 0; member < 4; ++member) {
    auto x = begun();
    CHECK(x.open(2, {member}, true) == member);
    x.rebuilt(2);
    CHECK(x.lost().empty());
    CHECK_FALSE(x.open(3, {}, true));
  }
}

TEST_CASE("L-M26 two lost members are lost, and protected again from then on") {
  auto x = begun();
  CHECK_FALSE(x.open(2, {0, 2}, true));
  CHECK(x.lost() == members{0, 2});
  CHECK(x.open(3, {1}, true) == 1);
  auto with_parity = begun();
  CHECK_FALSE(with_parity.open(2, {1, 3}, true));
  CHECK(with_parity.lost() == members{1});
}

TEST_CASE("L-M26 a rebuild that was not finished is still due, and with another loss too late") {
  auto x = begun();
  CHECK(x.open(2, {1}, true) == 1);
  CHECK(x.open(3, {}, true) == 1); // the worker says that it has kept what it has
  CHECK_FALSE(x.open(4, {2}, true));
  CHECK(x.lost() == members{1, 2});
  auto failed = begun();
  CHECK(failed.open(2, {1}, true) == 1);
  CHECK(failed.lost() == members{1});
  CHECK_FALSE(failed.open(3, {}, true));
}

TEST_CASE("L-M26 the end of an older rebuild says nothing about the member that is there now") {
  auto x = begun();
  CHECK(x.open(2, {1}, true) == 1);
  CHECK(x.open(3, {1}, true) == 1);
  x.rebuilt(2);
  CHECK(x.lost() == members{1});
}

TEST_CASE(
    "L-M26 what is written without the parity has none, whoever comes back with an older one") {
  auto x = begun();
  CHECK_FALSE(x.open(2, {}, false));
  CHECK(x.lost().empty());
  CHECK(x.open(3, {}, true) == 3);
  x.rebuilt(3);
  CHECK(x.open(4, {0}, true) == 0);
  auto both = begun();
  CHECK_FALSE(both.open(2, {0}, false));
  CHECK(both.lost() == members{0});
  CHECK_FALSE(both.open(3, {2}, true)); // the parity was away when shard 2 wrote
  CHECK(both.lost() == members{2});
  CHECK_FALSE(both.open(4, {}, true));
}
