// How busy a device was lately, whoever looks and however often.
#include "actors/shared/busy_share.hpp"

#include <doctest/doctest.h>

using namespace std::chrono_literals;
using lamella::actors::busy_share;

namespace {

constexpr uint64_t ms = 1'000'000;

} // namespace

TEST_CASE("the busy share is that of the last seconds") {
  busy_share share;
  const busy_share::time_point zero{1h};
  CHECK(share.look(zero, 0) < 0); // nothing is known yet
  CHECK(share.look(zero + 100ms, 50 * ms) < 0);
  CHECK(share.look(zero + 1s, 500 * ms) == doctest::Approx(.5));
  // Idle from now on: after a window nothing is left of it.
  for (auto t = 1s + 100ms; t <= 6s; t += 100ms) share.look(zero + t, 500 * ms);
  CHECK(share.look(zero + 6s, 500 * ms) == 0);
  CHECK(share.look(zero + 7s, 1'500 * ms) == doctest::Approx(1000. / 3500).epsilon(.2));
}

TEST_CASE("a share stays between 0 and 1, and a counter that begins again gives none") {
  busy_share share;
  const busy_share::time_point zero{1h};
  share.look(zero, 0);
  CHECK(share.look(zero + 1s, 5'000 * ms) == 1);
  busy_share other;
  other.look(zero, 100);
  CHECK(other.look(zero + 1s, 0) < 0);
}
