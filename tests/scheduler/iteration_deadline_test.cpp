#include "scheduler/iteration_deadline.hpp"

#include <doctest/doctest.h>

using namespace lamella::scheduler;
using namespace std::chrono_literals;

TEST_CASE("reliability A1: an iteration's deadline follows the median, within its bounds") {
  iteration_deadline x;
  CHECK(x.next(0) == 60s); // nothing is known
  for (int i = 0; i < 3; ++i) x.add(200ms);
  CHECK(x.next(0) == 60s);
  x.add(200ms);
  CHECK(x.next(0) == 3200ms); // four tell enough
  for (int i = 0; i < 28; ++i) x.add(200ms);
  CHECK(x.next(0) == 3200ms);
  CHECK(x.next(1) == 6400ms);
  CHECK(x.next(2) == 12800ms);
  CHECK(x.next(9) == 60s);
  for (int i = 0; i < 32; ++i) x.add(30s); // a few slow ones do not move it far
  for (int i = 0; i < 64; ++i) x.add(200ms);
  CHECK(x.next(0) == 3200ms);
  for (int i = 0; i < 256; ++i) x.add(2ms);
  CHECK(x.next(0) == 1s);
  for (int i = 0; i < 256; ++i) x.add(10s);
  CHECK(x.next(0) == 60s);
}
