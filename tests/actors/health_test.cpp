// What a start waits for: woken, not found at the next look. A wake that is lost would last longer
// than a test may.
#include "actors/health.hpp"

#include <doctest/doctest.h>

#include <future>

namespace lamella::actors::test {

using namespace std::chrono_literals;

TEST_CASE("Who waits for the first beat is woken by it, and not before") {
  pulse beats;
  CHECK_FALSE(beats.wait_first(0ms));
  auto waits = std::async(std::launch::async, [&] { return beats.wait_first(1h); });
  beats.beat(std::chrono::steady_clock::now());
  CHECK(waits.get());
  CHECK(beats.count() == 1);
  beats.beat(std::chrono::steady_clock::now());
  CHECK(beats.wait_first(0ms));
}

TEST_CASE("Who waits for the gateway is woken when it has a pipeline, and not before") {
  health_board board{10s};
  CHECK_FALSE(board.wait_served(0ms));
  auto waits = std::async(std::launch::async, [&] { return board.wait_served(1h); });
  board.set_served();
  CHECK(waits.get());
  CHECK(board.wait_served(0ms));
}

} // namespace lamella::actors::test
