#include "scheduler/rotation.hpp"

#include <doctest/doctest.h>

#include <set>

using namespace lamella::scheduler;

TEST_CASE("L-M20 R batches with the same k are on R replicas") {
  for (const uint32_t replicas : {1u, 2u, 3u, 6u, 16u}) {
    const rotation r{replicas};
    for (uint64_t k = 0; k < 200; ++k) {
      std::set<uint32_t> places;
      for (uint32_t j = 0; j < replicas; ++j) places.insert(r.replica_of(j, k));
      CHECK(places.size() == replicas);
    }
  }
}

TEST_CASE("L-M20 k counts on across iterations, and the token stays where it was sampled") {
  // 80 layers over three replicas: starting over at 0 would put batch 0 on replica 0 again.
  const rotation r{3};
  CHECK(r.replica_of(0, slice_count(0, 80, 80)) == 2);
  CHECK(r.replica_of(0, slice_count(1, 0, 80)) == 2);
  CHECK(r.replica_of(0, slice_count(1, 1, 80)) == 0);
}

TEST_CASE("L-M21 with one replica nothing ever moves; with more, every slice is on the next one") {
  for (const uint32_t replicas : {1u, 2u, 3u, 6u})
    for (uint32_t batch = 0; batch <= replicas; ++batch)
      for (uint64_t k = 0; k < 200; ++k) {
        const rotation r{replicas};
        CHECK((r.replica_of(batch, k) != r.replica_of(batch, k + 1)) == (replicas > 1));
        CHECK(r.next_of(r.replica_of(batch, k)) == r.replica_of(batch, k + 1));
      }
}
