// How much of a machine a service uses.
#include "actors/machine/sizing.hpp"

#include <doctest/doctest.h>

namespace lamella::actors::test {

TEST_CASE("Weights and KV that the memory cannot hold are refused, where they lie in it") {
  const auto limit = memory_limit();
  config::settings x;
  CHECK(why_too_large(x, limit / 4, limit / 4).empty());
  CHECK(why_too_large(x, limit + 1, 0).find(std::to_string(limit)) != std::string::npos);
  CHECK_FALSE(why_too_large(x, limit / 4, limit).empty());
  x.pools.attention.device = "cuda:0";
  CHECK(why_too_large(x, limit / 4, limit / 4).empty());
  x.pools.attention.device = "auto";
  x.pools.attention.placement = config::placement::remote;
  CHECK(why_too_large(x, limit / 4, limit / 4).empty());
  // Nor do weights that lie elsewhere.
  x.pools.model.placement = config::placement::remote;
  CHECK(why_too_large(x, limit + 1, limit / 4).empty());
  x.pools.model.placement = config::placement::local;
  CHECK_FALSE(why_too_large(x, limit + 1, 0).empty());
  x.pools.model.device = "cuda:0";
  CHECK(why_too_large(x, limit + 1, limit / 4).empty());
}

} // namespace lamella::actors::test
