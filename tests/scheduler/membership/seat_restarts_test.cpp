#include "scheduler/membership/seat_restarts.hpp"

#include <doctest/doctest.h>

#include <vector>

namespace lamella::scheduler::test {

using namespace std::chrono_literals;

namespace {

/// Virtual time: nothing here reads a clock.
struct seat_life {
  seat_restarts restarts{5, 30s};
  seat_restarts::time_point now{};

  /// The process fails so long after its start; says after how long it starts again.
  std::chrono::milliseconds fails(std::chrono::milliseconds after = 100ms) {
    now += after;
    restarts.on_fault(now);
    const auto delay = restarts.next_delay(0.5);
    now += delay;
    return delay;
  }
  void serves(std::chrono::milliseconds so_long) {
    restarts.on_serving(now);
    now += so_long;
  }
};

} // namespace

TEST_CASE(
    "reliability A8: a process that dies at once is tried for ever, 20 times in ten minutes") {
  seat_life x;
  std::vector<int64_t> delays;
  int starts = 0;
  while (x.now < seat_restarts::time_point{} + 10min) {
    delays.push_back(x.fails(10ms).count());
    ++starts;
    CHECK(x.restarts.failing() == (starts > 5));
    CHECK(x.restarts.faults() == static_cast<uint32_t>(starts));
  }
  CHECK(starts <= 20);
  delays.resize(13);
  CHECK(delays
        == std::vector<int64_t>{10, 20, 40, 80, 160, 1000, 2000, 4000, 8000, 16000, 32000, 60000,
                                60000});
  for (int i = 0; i < 1000; ++i) CHECK(x.fails() == 60s);
}

TEST_CASE("who serves fails no more, and starts over when it has served for a minute") {
  seat_life x;
  while (!x.restarts.failing()) x.fails();
  x.fails();
  x.serves(59s);
  CHECK_FALSE(x.restarts.failing());
  CHECK(x.fails(0ms) == 4s); // it flaps: where it was
  CHECK(x.restarts.failing());
  x.serves(60s);
  CHECK(x.fails(0ms) < 1s);
  CHECK_FALSE(x.restarts.failing());
  CHECK(x.restarts.faults() == 1);
}

TEST_CASE("a device that fails at its work does not come back every few milliseconds") {
  seat_life x;
  int ends = 0;
  while (x.now < seat_restarts::time_point{} + 10min) {
    x.serves(500ms);
    x.fails(0ms);
    ++ends;
  }
  CHECK(ends <= 20);
}

TEST_CASE("ends from outside make no seat fail, nor mend one that has not served") {
  seat_life x;
  for (int i = 0; i < 54; ++i) {
    x.restarts.on_loss(x.now += 1s);
    CHECK_FALSE(x.restarts.failing());
    CHECK(x.restarts.next_delay(0.5) <= 5s);
  }
  while (!x.restarts.failing()) x.fails();
  x.restarts.on_loss(x.now += 1s);
  CHECK(x.restarts.failing());
  x.serves(100ms);
  x.restarts.on_loss(x.now);
  CHECK_FALSE(x.restarts.failing());
}

TEST_CASE("faults that a request explains are forgiven") {
  seat_life x;
  while (!x.restarts.failing()) x.fails();
  x.restarts.forgive();
  CHECK_FALSE(x.restarts.failing());
  CHECK(x.restarts.faults() == 0);
  CHECK(x.fails() == 10ms);
}

} // namespace lamella::scheduler::test
