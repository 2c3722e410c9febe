#include "actors/machine/processor_wait.hpp"

#include <doctest/doctest.h>

#include <unistd.h>

#include <limits>

namespace lamella::actors::test {

TEST_CASE("the wait of a process for processors is known, and never gets less") {
  const auto first = waited_for_processors(static_cast<uint32_t>(getpid()));
  if (!first) {
    MESSAGE("skipped: this system does not tell");
    return;
  }
  CHECK(first->count() >= 0);
  const auto second = waited_for_processors(static_cast<uint32_t>(getpid()));
  REQUIRE(second);
  CHECK(*second >= *first);
}

TEST_CASE("of a process that is not there no wait is known") {
  CHECK_FALSE(waited_for_processors(std::numeric_limits<uint32_t>::max()));
}

} // namespace lamella::actors::test
