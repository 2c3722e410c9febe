#include "scheduler/placement.hpp"
#include "scheduler/types.hpp"

#include <doctest/doctest.h>

#include <vector>

using namespace lamella::scheduler;

TEST_CASE("V-M14 a sequence goes where the fewest are, the first place on ties") {
  CHECK(least_loaded(std::vector<uint64_t>{7, 1, 17, 1}, 54, 1) == 1u);
  CHECK(least_loaded(std::vector<uint64_t>{0, 0, 0}, 54, 54) == 0u);
}

TEST_CASE("a place without room is passed over, and no room anywhere is a refusal") {
  CHECK(least_loaded(std::vector<uint64_t>{54, 53}, 54, 1) == 1u);
  CHECK_FALSE(least_loaded(std::vector<uint64_t>{54, 53}, 54, 2));
  CHECK_FALSE(least_loaded({}, 54, 1));
}

TEST_CASE("V-M07 placing whole requests by load keeps members within one request of each other") {
  std::vector<uint64_t> load(7, 0);
  for (int i = 0; i < 54; ++i) ++load[least_loaded(load, 1000, 1).value()];
  for (auto x : load) CHECK((x == 7 || x == 8));
}

TEST_CASE("a sequence id tells its request and its place in it") {
  for (uint64_t request : {1u, 7u, 54u})
    for (uint32_t k : {0u, 1u, 17u, 65535u}) {
      const auto id = sequence_of(request_id{request}, k);
      CHECK(request_of(id) == request_id{request});
      CHECK(index_of(id) == k);
    }
}
