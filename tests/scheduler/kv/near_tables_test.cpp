// Which slot tables are near which replicas, and when a sequence gets its KV there.
#include "scheduler/kv/kv_grants.hpp"
#include "scheduler/kv/near_tables.hpp"
#include "scheduler/kv_balance.hpp"

#include <doctest/doctest.h>

namespace lamella::scheduler::test {

namespace {

using tables = std::vector<uint32_t>;
using hosts = std::vector<std::string>;

kv_layout by_request(uint32_t members) {
  kv_layout x;
  x.cells.assign(members, {1, 100});
  return x;
}

} // namespace

TEST_CASE("a table is near a batch when all of its members are on the host of all its replicas") {
  const auto three = by_request(3);
  const hosts members{"a", "b", "a"};
  CHECK(near_tables(three, members, {"a"}) == tables{0, 2});
  CHECK(near_tables(three, members, {"b"}) == tables{1});
  CHECK(near_tables(three, members, {"c"}).empty());
  CHECK(near_tables(three, members, {"a", "a"}) == tables{0, 2});
  CHECK(near_tables(three, members, {"a", "b"}).empty()); // it rotates over both
  CHECK(near_tables(three, members, {}).empty());
  kv_layout cells;
  cells.cells = {{2, 100}, {0, 0}, {1, 50}};
  CHECK(near_tables(cells, {"a", "a", "b", "a"}, {"a"}) == tables{0}); // the last one has parity
  CHECK(near_tables(cells, {"a", "b", "b"}, {"a"}).empty());
  CHECK(near_tables(cells, {"a", "b", "b"}, {"b"}) == tables{2});
}

TEST_CASE("nearness is a choice where some tables are near a batch and some are not") {
  const auto two = by_request(2);
  CHECK(has_near_and_far(two, {{0}, {1}}));
  CHECK(has_near_and_far(two, {{}, {1}}));
  CHECK_FALSE(has_near_and_far(two, {{0, 1}, {0, 1}})); // one host
  CHECK_FALSE(has_near_and_far(two, {{}, {}}));         // replicas and shards apart
  CHECK_FALSE(has_near_and_far(two, {}));
}

TEST_CASE("a sequence gets its KV near its batch, unless tables would become too unequal for it") {
  kv_loads x{{1000, 1000, 1000}, {0, 0, 0}};
  CHECK(nearest_for(x, 50, 50, {1}) == 1);
  CHECK(nearest_for(x, 50, 50, {1, 2}) == 1);
  CHECK(nearest_for(x, 50, 50, {}) == 0);
  CHECK(nearest_for(x, 50, 50, {7}) == 0); // of an epoch that was
  x.used = {0, 50, 60};
  CHECK(nearest_for(x, 50, 50, {1, 2}) == 1); // a tenth of its slots more than the emptiest
  CHECK(nearest_for(x, 51, 51, {1, 2}) == 0);
  CHECK(nearest_for(x, 500, 50, {1, 2}) == 1); // what is to stay free is nobody's
  x.used = {900, 930, 60};
  CHECK(nearest_for(x, 100, 20, {1}) == 2); // no room there
  x.slots[1] = 0;
  CHECK(nearest_for(x, 10, 10, {1}) == 2); // it goes
}

TEST_CASE("a reservation names the tables near its batch, and what the cache has goes before") {
  kv_tables two;
  two.list = {{{"attention-0"}, 100}, {{"attention-1"}, 100}};
  kv_ledger ledger{{std::chrono::seconds{1}, 0}, two};
  ledger.epoch = 1;
  kv_need need{.holder = sequence_id{1}, .slots = 5, .mode = reserve_mode::fresh};
  need.near = {1};
  CHECK(table_for(ledger, need, 0) == 1);
  const auto got = reserve(ledger, {need}, 0, {});
  REQUIRE(got);
  CHECK(got->front().member == 1);
  need.holder = sequence_id{2};
  CHECK(table_for(ledger, need, 0) == 1); // as long as it is about as empty as the other
  need.slots = 20;
  CHECK(table_for(ledger, need, 0) == 0);
  need.near = {0};
  need.holder = sequence_id{1};
  CHECK(table_for(ledger, need, 0) == 1); // where the rest of it is
}

} // namespace lamella::scheduler::test
