#include "actors/shared/failover_tally.hpp"

#include <doctest/doctest.h>

using lamella::actors::failover_tally;
using cause = lamella::net::failover_cause;

TEST_CASE("A loss that the pipeline meets before anybody misses the worker is not counted again") {
  failover_tally tally;
  CHECK_FALSE(tally.serves(0));
  tally.ended("model", cause::partition);
  SUBCASE("told while the next one waits") { tally.ended("attention", std::nullopt); }
  SUBCASE("the next epoch was opened without it") {}
  CHECK_FALSE(tally.serves(1));
  CHECK_FALSE(tally.serves(1));
}

TEST_CASE("Where nobody is lost, what ended the pipeline counts once, as it was met first") {
  failover_tally tally;
  CHECK_FALSE(tally.serves(3)); // others came and went before
  tally.ended("attention", cause::deadline);
  tally.ended("model", cause::partition); // the restart met it again
  const auto counts = tally.serves(3);
  REQUIRE(counts);
  CHECK(counts->first == "attention");
  CHECK((counts->second == cause::deadline));
  CHECK_FALSE(tally.serves(3));
}
