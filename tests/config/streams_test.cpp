// Streams that a service opens, by where prompts are computed and who decodes.
#include "config/streams.hpp"

#include <doctest/doctest.h>

namespace lamella::config::test {

namespace {

/// Two replicas, and three prefill workers with KV of their own.
settings apart() {
  settings x;
  x.pools.model.members = 2;
  x.pools.prefill.members = 3;
  x.pools.prefill.attention = prefill_attention::own;
  return x;
}

} // namespace

TEST_CASE("S-M03 with mixed launches prefill workers have batches, with KV of their own or not") {
  auto x = apart();
  CHECK(prompt_streams(x) == 3);
  CHECK(prompt_batches(x) == 0);
  CHECK(mixed_streams(x) == 2);
  x.batching.launches = launches::mixed;
  CHECK(prompt_streams(x) == 3);
  CHECK(prompt_batches(x) == 3);
  CHECK(mixed_streams(x) == 0);
  CHECK(mixed_batches(x) == 5);
  CHECK(served_streams(x) == 8);
  x.pools.prefill.attention = prefill_attention::shards;
  x.pools.prefill.placement = placement::local;
  CHECK(prompt_streams(x) == 0); // all prompts are in the launches of batches
  CHECK(prompt_batches(x) == 3);
  CHECK(served_streams(x) == 5);
}

TEST_CASE("S-M07 where no prompt overflows, KV of their own is for prompts alone") {
  auto x = apart();
  x.batching.launches = launches::mixed;
  x.pools.prefill.overflow_tokens = 0;
  CHECK(prompt_batches(x) == 0);
  CHECK(mixed_batches(x) == 2); // for prompts whose beginning is cached
  x.kv.prefix_cache = milliseconds{0};
  CHECK(mixed_batches(x) == 0);
}

} // namespace lamella::config::test
