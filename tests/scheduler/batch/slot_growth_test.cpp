#include "scheduler/batch/slot_growth.hpp"

#include <doctest/doctest.h>

#include <set>

using namespace lamella::scheduler;

TEST_CASE("a sequence asks for slots when as many are left as the answer takes") {
  const slot_growth growth;
  CHECK(growth.window == 32);
  CHECK(growth.tokens_left(10, 100) == 82);
  CHECK_FALSE(growth.asks(91, 100));
  CHECK(growth.asks(92, 100));
  CHECK(growth.asks(100, 100));
  CHECK(growth.tokens_left(103, 100) == 0);
  const slot_growth instant{16, 0};
  CHECK_FALSE(instant.asks(99, 100));
  CHECK(instant.asks(100, 100));
}

TEST_CASE("V-M13 the last to come of those that may go is preempted") {
  const std::set<uint32_t> by_age{1, 3, 7, 11};
  CHECK(last_to_come(by_age, [](uint32_t x) { return x < 11; }) == 7);
  CHECK_FALSE(last_to_come(by_age, [](uint32_t) { return false; }));
}

TEST_CASE("what a prompt needs to start, and what it leaves to those that run") {
  CHECK(limits::slots_to_start(100, 32) == 132);
  CHECK(limits::slots_to_start(100, 32, 3) == 196);
  CHECK(limits::kept_free_of(1000) == 50);
  CHECK(limits::kept_free_of(19) == 0);
}
