#include "scheduler/membership/probe_timeout.hpp"

#include <doctest/doctest.h>

using namespace lamella::scheduler;
using namespace std::chrono_literals;

TEST_CASE("reliability A1: who is asked twice and says nothing is given up before its connection") {
  const probe_timeout x{1000ms};
  CHECK(x.half(worker_role::model) == 150ms);
  CHECK(x.half(worker_role::prefill) == 150ms);
  CHECK(x.half(worker_role::attention) == 350ms);
  for (const auto role : {worker_role::model, worker_role::attention, worker_role::prefill})
    CHECK(x.every() + 2 * x.half(role) < 1000ms);
  CHECK(probe_timeout{1ms}.half(worker_role::model) >= 1ms); // never no time at all
}

TEST_CASE("reliability A1: false alarms of a role give it more time, up to twice what is dead") {
  probe_timeout x{1000ms};
  auto now = probe_timeout::time_point{} + 1h;
  int count = 0; // two workers take turns
  const auto next = [&] { return std::pair{std::string{"host"}, std::to_string(++count % 2)}; };
  for (int i = 0; i < 3; ++i)
    CHECK_FALSE(x.false_alarm(worker_role::model, next(), false, now += 1s));
  now += 2min; // long ago
  for (int i = 0; i < 3; ++i)
    CHECK_FALSE(x.false_alarm(worker_role::model, next(), false, now += 1s));
  CHECK(x.half(worker_role::model) == 150ms);
  CHECK(x.false_alarm(worker_role::model, next(), false, now += 1s));
  CHECK(x.half(worker_role::model) == 300ms);
  CHECK(x.half(worker_role::attention) == 350ms); // another role
  for (int i = 0; i < 100; ++i) x.false_alarm(worker_role::model, next(), false, now += 1s);
  CHECK(x.half(worker_role::model) == 1000ms);
}

TEST_CASE("reliability A1: false alarms of one worker of several leave the others their time") {
  probe_timeout x{1000ms};
  auto now = probe_timeout::time_point{} + 1h;
  for (int i = 0; i < 100; ++i)
    CHECK_FALSE(x.false_alarm(worker_role::attention, {"host", "slow"}, false, now += 100ms));
  CHECK(x.half(worker_role::attention) == 350ms);
  CHECK(x.false_alarm(worker_role::attention, {"host", "other"}, false, now += 1s));
  CHECK(x.half(worker_role::attention) == 700ms);
  // The only worker of a role gets more time: nobody serves while it rests.
  for (int i = 0; i < 3; ++i)
    CHECK_FALSE(x.false_alarm(worker_role::model, {"host", "only"}, true, now += 1s));
  CHECK(x.false_alarm(worker_role::model, {"host", "only"}, true, now += 1s));
}
