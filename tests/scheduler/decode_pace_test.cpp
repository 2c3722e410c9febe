#include "scheduler/decode_pace.hpp"

#include <doctest/doctest.h>

using namespace lamella::scheduler;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;

namespace {
constexpr stream_id first{prefill_streams}, second{prefill_streams + 1};
}

TEST_CASE("L-M26 decoding takes its share of the time while lost KV is computed again") {
  for (const uint32_t percent : {1u, 10u, 20u, 50u, 99u}) {
    decode_pace pace{percent};
    pace.rebuilds(first, true);
    nanoseconds now = milliseconds{5}, ran{0};
    const auto begin = now;
    for (int i = 1; i <= 100; ++i) {
      const auto took = milliseconds{1 + i % 7};
      now += took;
      ran += took;
      pace.ran(now, took);
      CHECK(pace.rest(now) > nanoseconds{0});
      now += pace.rest(now);
      CHECK(pace.rest(now) == nanoseconds{0}); // it has rested
    }
    const auto share =
        static_cast<double>(ran.count()) / static_cast<double>((now - begin).count());
    CHECK(share == doctest::Approx(percent / 100.0).epsilon(0.001));
  }
}

TEST_CASE("L-M26 decoding is not bounded before, afterwards, or with all of the time") {
  decode_pace pace{20};
  pace.ran(milliseconds{100}, milliseconds{100});
  CHECK_FALSE(pace.bounded());
  CHECK(pace.rest(milliseconds{100}) == nanoseconds{0});
  pace.rebuilds(first, true);
  pace.rebuilds(second, true);
  pace.rebuilds(second, true); // said again
  CHECK(pace.rest(milliseconds{100}) == milliseconds{400});
  pace.rebuilds(first, false);
  CHECK(pace.bounded());
  pace.rebuilds(second, false);
  CHECK_FALSE(pace.bounded());
  CHECK(pace.rest(milliseconds{100}) == nanoseconds{0});
  decode_pace free{100};
  free.rebuilds(first, true);
  free.ran(milliseconds{100}, milliseconds{100});
  CHECK_FALSE(free.bounded());
}

TEST_CASE("L-M26 decoding never stops wholly, however long an iteration took") {
  decode_pace pace{1};
  pace.rebuilds(first, true);
  pace.ran(milliseconds{0}, std::chrono::hours{1});
  CHECK(pace.rest(milliseconds{0}) == decode_pace::rest_max);
}

TEST_CASE("L-M26 batches have their share together") {
  CHECK(share_of_batch(20, 1) == 20);
  CHECK(share_of_batch(20, 2) == 10);
  CHECK(share_of_batch(3, 64) == 1);
  CHECK(share_of_batch(100, 8) == 100);
}
