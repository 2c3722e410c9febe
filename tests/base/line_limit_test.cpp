#include "base/line_limit.hpp"

#include <doctest/doctest.h>

namespace lamella::test {

TEST_CASE("ten lines a second are written, and the next second tells how many were not") {
  line_limit lines;
  const line_limit::time_point start{std::chrono::hours{1}};
  int said = 0;
  for (int i = 0; i < 1'000; ++i) {
    const auto x = lines.next(start + std::chrono::microseconds{i});
    said += x.say;
    CHECK(x.unsaid == 0);
  }
  CHECK(said == line_limit::per_second);
  const auto later = lines.next(start + std::chrono::seconds{1});
  CHECK(later.say);
  CHECK(later.unsaid == 990);
  CHECK(lines.next(start + std::chrono::seconds{9}).unsaid == 0);
}

} // namespace lamella::test
