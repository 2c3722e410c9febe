#include "scheduler/work_deadline.hpp"

#include <doctest/doctest.h>

using namespace lamella::scheduler;
using namespace std::chrono_literals;

TEST_CASE("reliability A1: the deadline of work follows its size, from the first like it on") {
  work_deadline x{100, 60s};
  CHECK(x.next(1) == 60s); // nothing is known
  x.add(900, 1s);          // a millisecond for each unit, and for each of the fixed part
  CHECK(x.next(900) == 16s);
  CHECK(x.next(400) == 8s);
  CHECK(x.next(0) == 2s); // never less
  CHECK(x.next(400, 1) == 16s);
  CHECK(x.next(400, 2) == 32s);
  CHECK(x.next(400, 9) == 60s);
  CHECK(x.next(1'000'000) == 60s);
  x.add(900, 100s); // slow ones count once there are as many of them
  x.add(900, 1s);
  CHECK(x.next(900) == 16s);
  for (int i = 0; i < 32; ++i) x.add(900, 2s);
  CHECK(x.next(900) == 32s);
}

TEST_CASE("reliability A1: before anything is known the slowest way that is worth it bounds work") {
  const work_deadline x{0, 20s, 1 << 20};
  CHECK(x.next(0) == 2s);
  CHECK(x.next(5 << 20) == 7s);
  CHECK(x.next(5 << 20, 1) == 14s);
  CHECK(x.next(100 << 20) == 20s);
}
