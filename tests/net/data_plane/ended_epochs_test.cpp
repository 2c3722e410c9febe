#include "net/data_plane/ended_epochs.hpp"

#include <doctest/doctest.h>

using lamella::net::ended_epochs;

TEST_CASE("A3 an epoch that is open has links however many newer ones have ended") {
  ended_epochs epochs;
  REQUIRE(epochs.begin(7));
  for (uint64_t epoch = 8; epoch < 8 + 3 * ended_epochs::remembered; ++epoch) {
    CHECK(epochs.begin(epoch));
    epochs.end(epoch);
  }
  CHECK_FALSE(epochs.ended(7));
  CHECK(epochs.begin(7)); // another link
  CHECK(epochs.ended(6)); // nobody has opened it
  epochs.end(7);
  CHECK(epochs.ended(7));
  CHECK_FALSE(epochs.begin(7));
}

TEST_CASE("A3 an epoch that has ended stays so, also when it is forgotten which ones have") {
  ended_epochs epochs;
  const uint64_t last = 2 * ended_epochs::remembered;
  for (uint64_t epoch = 1; epoch <= last; ++epoch) epochs.end(epoch);
  for (uint64_t epoch = 1; epoch <= last; ++epoch) CHECK_FALSE(epochs.begin(epoch));
  CHECK(epochs.begin(last + 1));
  CHECK_FALSE(epochs.ended(last + 1));
}
