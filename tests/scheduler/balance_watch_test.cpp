// When slot tables are levelled: when they stay unequal, when it helps, and not too often.
#include "scheduler/balance_watch.hpp"

#include <doctest/doctest.h>

namespace lamella::scheduler::test {

using namespace std::chrono_literals;

TEST_CASE("L-M03 what lasts is levelled, once, and again only after a rest") {
  balance_watch watch;
  std::vector<int> moves;
  for (int second = 0; second < 60; ++second)
    if (watch.look(0.4, 0.05, std::chrono::seconds{second})) moves.push_back(second);
  CHECK(moves == std::vector<int>{20, 40});
}

TEST_CASE("L-M03 what passes, what is little and what moves would not mend is left alone") {
  balance_watch watch;
  for (int second = 0; second < 60; ++second) {
    CAPTURE(second);
    CHECK_FALSE(watch.look(second % 5 == 4 ? 0.0 : 0.5, 0.0, std::chrono::seconds{second}));
  }
  for (int second = 60; second < 80; ++second) {
    CHECK_FALSE(watch.look(balance_tolerance, 0, std::chrono::seconds{second}));
    CHECK_FALSE(watch.look(0.5, 0.3, std::chrono::seconds{second})); // one long sequence
  }
}

} // namespace lamella::scheduler::test
