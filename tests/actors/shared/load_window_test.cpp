// What requests have seen of the last seconds.
#include "actors/shared/load_window.hpp"

#include <doctest/doctest.h>

namespace lamella::actors::test {

using namespace std::chrono_literals;

TEST_CASE("A window of the load has percentiles within 5 % and forgets what is older") {
  load_window load;
  const load_window::time_point start{1h};
  CHECK(load.read(start).tokens_per_s == 0);
  for (int i = 0; i < 1000; ++i) load.token_gap(start, i < 985 ? 10ms : 200ms);
  load.first_token(start, 3s);
  load.tokens(start, 500);
  CHECK(load.read(start + 500ms).tbt_p99.count() == 0); // that second is under way
  const auto now = load.read(start + 1s);
  CHECK((now.tbt_p99.count() >= 0.2 && now.tbt_p99.count() <= 0.21));
  CHECK((now.ttft_p99.count() >= 3 && now.ttft_p99.count() <= 3.15));
  CHECK(now.tokens_per_s == doctest::Approx(500));
  load.tokens(start + 4s, 500);
  CHECK(load.read(start + 5s).tokens_per_s == doctest::Approx(200));
  CHECK(load.read(start + 5s, 2s).tokens_per_s == doctest::Approx(250));
  CHECK(load.read(start + 10s).ttft_p99.count() > 0);
  CHECK(load.read(start + 11s).ttft_p99.count() == 0);
  CHECK(load.read(start + 11s).tokens_per_s == doctest::Approx(50));
  CHECK(load.read(start + 1h).tokens_per_s == 0);
  load.tokens(start + 1h, 10);
  load.tokens(start, 1000); // too late
  CHECK(load.read(start + 1h + 1s, 1s).tokens_per_s == doctest::Approx(10));
}

TEST_CASE("A window of the load takes any duration") {
  load_window load;
  const load_window::time_point start{1h};
  for (const auto x : {-1s, 0s, 100'000s}) load.first_token(start, x);
  CHECK(load.read(start + 1s).ttft_p99.count() > 900);
}

} // namespace lamella::actors::test
