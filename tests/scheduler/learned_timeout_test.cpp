#include "scheduler/learned_timeout.hpp"

#include <doctest/doctest.h>

using namespace lamella::scheduler;
using namespace std::chrono_literals;

TEST_CASE("reliability A1: an iteration's timeout follows the median, within its bounds") {
  learned_timeout x{timeout_of_iterations};
  CHECK(x.next(1) == 60s); // nothing is known
  x.add(1, 100ms);
  CHECK(x.next(1) == 25600ms); // more rows may join
  x.add(1, 200ms);
  x.add(1, 100ms);
  CHECK(x.next(1) == 51200ms); // the longest counts
  x.add(1, 200ms);
  CHECK(x.next(1) == 3200ms); // four tell enough
  for (int i = 0; i < 28; ++i) x.add(1, 200ms);
  CHECK(x.next(1) == 3200ms);
  CHECK(x.next(1, 1) == 6400ms);
  CHECK(x.next(1, 2) == 12800ms);
  CHECK(x.next(1, 9) == 60s);
  for (int i = 0; i < 32; ++i) x.add(1, 30s); // a few slow ones do not move it far
  for (int i = 0; i < 64; ++i) x.add(1, 200ms);
  CHECK(x.next(1) == 3200ms);
  for (int i = 0; i < 256; ++i) x.add(1, 2ms);
  CHECK(x.next(1) == 1s);
  for (int i = 0; i < 256; ++i) x.add(1, 10s);
  CHECK(x.next(1) == 60s);
}

TEST_CASE("reliability A1: a median is renewed every 32 iterations, not for each") {
  learned_timeout x{timeout_of_iterations};
  for (int i = 0; i < 32; ++i) x.add(1, 200ms);
  for (int i = 0; i < 31; ++i) x.add(1, 400ms);
  CHECK(x.next(1) == 3200ms);
  x.add(1, 400ms);
  CHECK(x.next(1) == 6400ms);
}

TEST_CASE("reliability A1: a short first iteration does not have the next ones wait for a minute") {
  learned_timeout x{timeout_of_iterations};
  x.add(1, 3ms);
  CHECK(x.next(1) == 10s);
  x.add(1, 3s);
  CHECK(x.next(1) == 60s);
}

TEST_CASE("reliability A1: what others have learned bounds the timeouts of the early iterations") {
  learned_timeout x{timeout_of_iterations};
  CHECK(x.next(1, 0, 2s) == 60s); // the first one may have to read weights
  CHECK_FALSE(x.learned());
  x.add(1, 50ms);
  CHECK(x.next(1) == 12800ms);
  CHECK(x.next(1, 0, 200ms) == 1s); // never less
  CHECK(x.next(1, 0, 1s) == 2s);
  CHECK(x.next(1, 1, 1s) == 4s);
  CHECK(x.next(1, 0, 30s) == 12800ms); // never more than without them
  x.add(1, 1s);
  CHECK(x.next(1, 0, 500ms) == 16s); // its own ones count as well
  for (int i = 0; i < 2; ++i) x.add(1, 50ms);
  CHECK(x.next(1, 0, 30s) == 1s); // it knows enough itself
  CHECK(x.learned() == 1s);
}

TEST_CASE("reliability A1: the timeout of work follows its size, from the first like it on") {
  learned_timeout x{{.least = 2s, .most = 60s, .fixed = 100}};
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
  const learned_timeout x{timeout_of_pulls};
  CHECK(x.next(0) == 2s);
  CHECK(x.next(5 << 20) == 7s);
  CHECK(x.next(5 << 20, 1) == 14s);
  CHECK(x.next(100 << 20) == 20s);
}

TEST_CASE(
    "reliability A1: the first iteration of an epoch has the time that earlier first ones tell") {
  learned_timeout x{timeout_of_first_iterations};
  CHECK(x.next(1) == 60s); // nothing is known
  CHECK(x.next(1, 2) == 60s);
  x.add(1, 20ms);
  CHECK(x.next(1) == 10s); // no less while few are known
  CHECK(x.next(1, 1) == 20s);
  CHECK(x.next(1, 5) == 60s);
  x.add(1, 100ms);
  CHECK(x.next(1) == 25600ms);
  CHECK(x.next(1 + 65) == 51200ms); // twice the work
  CHECK(x.next(1 << 20) == 60s);
  for (int i = 0; i < 2; ++i) x.add(1, 100ms);
  CHECK(x.next(1) == 25600ms);
  x.add(1, 55s); // one that stood still does not spoil it
  CHECK(x.next(1) == 25600ms);
  for (int i = 0; i < 16; ++i) x.add(1, 200ms);
  CHECK(x.next(1) == 51200ms);
  for (int i = 0; i < 16; ++i) x.add(1, 5ms);
  CHECK(x.next(1) == 3s); // never less
}
