#include "scheduler/iteration_deadline.hpp"

#include <doctest/doctest.h>

using namespace lamella::scheduler;
using namespace std::chrono_literals;

TEST_CASE("reliability A1: an iteration's deadline follows the median, within its bounds") {
  iteration_deadline x;
  CHECK(x.next(0) == 60s); // nothing is known
  x.add(100ms);
  CHECK(x.next(0) == 25600ms); // more rows may join
  x.add(200ms);
  x.add(100ms);
  CHECK(x.next(0) == 51200ms); // the longest counts
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

TEST_CASE("reliability A1: a short first iteration does not have the next ones wait for a minute") {
  iteration_deadline x;
  x.add(3ms);
  CHECK(x.next(0) == 10s);
  x.add(3s);
  CHECK(x.next(0) == 60s);
}
