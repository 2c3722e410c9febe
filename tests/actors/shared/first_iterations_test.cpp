#include "actors/shared/first_iterations.hpp"

#include <doctest/doctest.h>

namespace lamella::actors {

using namespace std::chrono_literals;

TEST_CASE(
    "reliability A1: the first iteration of an epoch has the time that earlier first ones tell") {
  first_iterations x;
  CHECK(x.limit(1) == 60s); // nothing is known
  CHECK(x.limit(1, 2) == 60s);
  x.add(1, 20ms);
  CHECK(x.limit(1) == 10s); // never less
  CHECK(x.limit(1, 1) == 20s);
  CHECK(x.limit(1, 5) == 60s);
  x.add(1, 100ms);
  CHECK(x.limit(1) == 25600ms);
  CHECK(x.limit(1 + 65) == 51200ms); // twice the work
  CHECK(x.limit(1 << 20) == 60s);
  x.add(1, 55s); // one that stood still does not spoil it
  CHECK(x.limit(1) == 25600ms);
  for (int i = 0; i < 16; ++i) x.add(1, 200ms);
  CHECK(x.limit(1) == 51200ms);
}

} // namespace lamella::actors
