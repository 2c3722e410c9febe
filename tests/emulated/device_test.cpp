// The emulated device itself.
#include "tests/emulated/launch.hpp"

#include <doctest/doctest.h>

TEST_CASE(
    "threads of a block that wait for each other forever are told of, and the next block runs") {
  const auto one_leaves = [] {
    if (threadIdx.x != 3) __syncthreads();
  };
  CHECK_THROWS_WITH_AS(emulated::run_block(64, 0, one_leaves),
                       "threads of a block wait for each other forever", std::logic_error);
  unsigned from_next[64] = {};
  emulated::run_block(64, 0, [&] {
    const auto own = threadIdx.x;
    const auto next = __shfl_sync(~0u, own, (own + 1) % 32);
    __syncthreads();
    from_next[own] = next;
  });
  for (unsigned i = 0; i < 64; ++i) CHECK(from_next[i] == i / 32 * 32 + (i + 1) % 32);
}
