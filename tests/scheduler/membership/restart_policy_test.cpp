#include "scheduler/membership/restart_policy.hpp"

#include <doctest/doctest.h>

#include <set>
#include <vector>

using namespace lamella::scheduler;
using namespace std::chrono_literals;

namespace {
/// Virtual time: nothing here reads a clock.
constexpr restart_policy::time_point start{};
} // namespace

TEST_CASE("as many restarts as allowed within the window, then the supervisor gives up") {
  for (uint32_t allowed : {0u, 1u, 7u}) {
    restart_policy policy{allowed, 30s};
    for (uint32_t i = 0; i < allowed; ++i)
      CHECK(policy.on_exit(start + i * 1s) == restart_verdict::restart);
    CHECK(policy.on_exit(start + 8s) == restart_verdict::escalate);
  }
}

TEST_CASE("jitters of restarts are spread over their range, and the same in every run") {
  std::set<int> tenths;
  for (uint64_t i = 1; i <= 100; ++i) {
    const auto jitter = restart_policy::jitter_of(i);
    CHECK(jitter >= 0);
    CHECK(jitter < 1);
    CHECK(jitter == restart_policy::jitter_of(i));
    tenths.insert(static_cast<int>(jitter * 10));
  }
  CHECK(tenths.size() == 10);
}

TEST_CASE("ends that are further apart than the window are never too many") {
  restart_policy policy{2, 30s};
  for (int i = 0; i < 54; ++i) {
    CHECK(policy.on_exit(start + i * 15001ms) == restart_verdict::restart);
    policy.on_serving(start + i * 15001ms);
  }
  restart_policy tight{2, 30s};
  CHECK(tight.on_exit(start) == restart_verdict::restart);
  tight.on_serving(start);
  CHECK(tight.on_exit(start + 15s) == restart_verdict::restart);
  tight.on_serving(start + 15s);
  CHECK(tight.on_exit(start + 30s) == restart_verdict::escalate); // the first still counts
}

TEST_CASE("ends before it has served are too many at last, however far apart") {
  restart_policy policy{3, 30s};
  for (int i = 0; i < 3; ++i) CHECK(policy.on_exit(start + i * 100s) == restart_verdict::restart);
  CHECK(policy.on_exit(start + 300s) == restart_verdict::escalate);
}

TEST_CASE("the delay doubles from 10 ms to 5 s and stays there") {
  restart_policy policy{100, 3600s};
  std::vector<int64_t> delays;
  for (int i = 0; i < 12; ++i) {
    policy.on_exit(start + i * 1s);
    delays.push_back(policy.next_delay(0.5).count());
  }
  CHECK(delays
        == std::vector<int64_t>{10, 20, 40, 80, 160, 320, 640, 1280, 2560, 5000, 5000, 5000});
}

TEST_CASE("jitter spreads a delay by a fifth to each side") {
  for (double jitter : {0.0, 0.25, 0.5, 0.999}) {
    restart_policy policy{100, 3600s};
    for (int i = 0; i < 7; ++i) policy.next_delay(0);
    const auto delay = static_cast<double>(policy.next_delay(jitter).count());
    CHECK(delay == doctest::Approx(1280 * (0.8 + 0.4 * jitter)).epsilon(0.001)); // whole ms
  }
}

TEST_CASE("after 60 s without an end the delay starts over, whatever the window") {
  for (auto window : {10s, 30s, 3600s}) {
    CAPTURE(window.count());
    restart_policy policy{100, window};
    auto now = start;
    for (int i = 0; i < 7; ++i) {
      policy.on_exit(now);
      policy.next_delay(0.5);
      now += 59s; // not healthy long enough
    }
    policy.on_exit(now);
    CHECK(policy.next_delay(0.5) == 1280ms);
    policy.on_exit(now + 61s);
    CHECK(policy.next_delay(0.5) == 10ms);
  }
}

TEST_CASE("ends from outside never escalate, but the delay grows with them") {
  restart_policy policy{1, 30s};
  auto longest = 0ms;
  for (int i = 0; i < 54; ++i) {
    policy.on_loss(start + i * 1s);
    const auto delay = policy.next_delay(0.5);
    CHECK(delay >= longest);
    longest = std::max(longest, delay);
  }
  CHECK(longest == 5000ms);
  CHECK(policy.on_exit(start + 54s) == restart_verdict::restart);
  CHECK(policy.on_exit(start + 55s) == restart_verdict::escalate);
  policy.on_loss(start + 200s);
  CHECK(policy.next_delay(0.5) == 10ms);
}

TEST_CASE("who is ended from outside after a second of service starts again at once") {
  restart_policy policy{1, 30s};
  for (int i = 0; i < 54; ++i) {
    const auto now = start + i * 3s;
    policy.on_loss(now);
    CHECK(policy.next_delay(0.5) == 10ms);
    policy.on_serving(now + 2s); // late, but a second before the next end
    policy.on_serving(now + 2500ms);
  }
  // Ended whenever it has just begun, or without service: each time later.
  for (int i = 0; i < 3; ++i) {
    const auto now = start + 200s + i * 3s;
    policy.on_loss(now);
    CHECK(policy.next_delay(0.5) == 10ms * (1 << i));
    if (i > 0) policy.on_serving(now + 2001ms);
  }
}

TEST_CASE("by its own fault it starts again later each time, though it has served") {
  restart_policy policy{100, 3600s};
  for (int i = 0; i < 4; ++i) {
    policy.on_exit(start + i * 3s);
    CHECK(policy.next_delay(0.5) == 10ms * (1 << i));
    policy.on_serving(start + i * 3s);
  }
}

TEST_CASE("ends that are forgiven count no more, and delay nothing") {
  restart_policy policy{2, 30s};
  for (int i = 0; i < 2; ++i) {
    CHECK(policy.on_exit(start + i * 1s) == restart_verdict::restart);
    policy.next_delay(0.5);
  }
  policy.forgive();
  CHECK(policy.on_exit(start + 2s) == restart_verdict::restart);
  CHECK(policy.next_delay(0.5) == 10ms);
  CHECK(policy.on_exit(start + 3s) == restart_verdict::restart);
  CHECK(policy.on_exit(start + 4s) == restart_verdict::escalate);
}
