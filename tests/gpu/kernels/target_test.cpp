#include "gpu/cuda/bench/target.hpp"

#include <doctest/doctest.h>

using namespace lamella::gpu::cuda::bench;

TEST_CASE("a benchmark's target line tells value, limits and verdict") {
  const target share{"share", 0.85, 0.93};
  CHECK(target_line(share, 0.93) == "target share 0.93 must >=0.85 aim >=0.93 aim");
  CHECK(target_line(share, 0.9) == "target share 0.9 must >=0.85 aim >=0.93 must");
  CHECK(target_line(share, 0.849) == "target share 0.849 must >=0.85 aim >=0.93 missed");
  const target gap{"gap-us", 30, 10, true};
  CHECK(target_line(gap, 8.75) == "target gap-us 8.75 must <=30 aim <=10 aim");
  CHECK(target_line(gap, 30) == "target gap-us 30 must <=30 aim <=10 must");
  CHECK(target_line(gap, 31) == "target gap-us 31 must <=30 aim <=10 missed");
  for (double nothing : {0.0, -1.0, double{NAN}, double{INFINITY}})
    CHECK(target_line(share, nothing) == "target share 0 must >=0.85 aim >=0.93 not-measured");
}
