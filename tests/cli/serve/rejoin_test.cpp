#include "actors/worker/child_keeper.hpp"
#include "cli/serve/rejoin.hpp"

#include <doctest/doctest.h>

namespace lamella::cli::test {

using namespace std::chrono_literals;

TEST_CASE("A worker waits longer after each short session, and not after a long one") {
  rejoin_pause pause{rejoin_pause::longest};
  for (const auto expected : {100ms, 200ms, 400ms, 800ms, 1600ms, 3200ms, 5000ms, 5000ms})
    CHECK(pause.next(59s, 0) == expected);
  CHECK(pause.next(61s, 0) == 100ms);
  CHECK(pause.next(1s, 1) == 160ms);
}

TEST_CASE("A child is back before its keeper takes it for hung") {
  rejoin_pause pause{rejoin_pause::longest_of_child};
  for (int i = 0; i < 20; ++i) CHECK(2 * pause.next(1s, 0) < actors::child_keeper_config{}.silence);
}

} // namespace lamella::cli::test
