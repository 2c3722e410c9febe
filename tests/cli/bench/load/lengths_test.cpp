// Lengths of prompts and answers of `lamella bench serve`.
#include "cli/bench/load/lengths.hpp"
#include "cli/commands.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <vector>

using namespace lamella::cli;

namespace {

struct drawn {
  double mean = 0, deviation = 0;
  uint32_t least = UINT32_MAX, most = 0;
};

drawn draw(const char* text, uint64_t seed) {
  constexpr int count = 20'000;
  const auto lengths = length_distribution::read(text, "--x");
  std::vector<double> all;
  drawn x;
  for (uint64_t i = 0; i < count; ++i) {
    const auto length = lengths.draw(seed, i);
    x.least = std::min(x.least, length);
    x.most = std::max(x.most, length);
    all.push_back(length);
    x.mean += length / double{count};
  }
  for (const double y : all) x.deviation += (y - x.mean) * (y - x.mean) / count;
  x.deviation = std::sqrt(x.deviation);
  return x;
}

} // namespace

TEST_CASE("lengths have the distribution that is asked for") {
  const auto fixed = draw("77", 1);
  CHECK(fixed.least == 77);
  CHECK(fixed.most == 77);
  const auto uniform = draw("uniform:10,20", 1);
  CHECK(uniform.least == 10);
  CHECK(uniform.most == 20);
  CHECK(uniform.mean == doctest::Approx(15).epsilon(0.01));
  const auto normal = draw("normal:1000,100", 1);
  CHECK(normal.mean == doctest::Approx(1000).epsilon(0.005));
  CHECK(normal.deviation == doctest::Approx(100).epsilon(0.03));
  // Mean and deviation are those of the lengths, not of their logarithms.
  const auto lognormal = draw("lognormal:200,100", 1);
  CHECK(lognormal.mean == doctest::Approx(200).epsilon(0.02));
  CHECK(lognormal.deviation == doctest::Approx(100).epsilon(0.05));
  const auto cut = draw("lognormal:200,300,50,400", 1);
  CHECK(cut.least == 50);
  CHECK(cut.most == 400);
  CHECK(draw("normal:1,100", 1).least == 1);
}

TEST_CASE("a length depends on seed and number only") {
  const auto lengths = length_distribution::read("uniform:1,1000000", "--x");
  CHECK(lengths.draw(3, 5) == lengths.draw(3, 5));
  CHECK(lengths.draw(3, 5) != lengths.draw(3, 6));
  CHECK(lengths.draw(3, 5) != lengths.draw(4, 5));
  CHECK(lengths.typical() == 500'001);
}

TEST_CASE("what is no length is refused with what to write instead") {
  for (const char* text : {"",
                           "0",
                           "-1",
                           "1.5",
                           "x",
                           "10000001",
                           "uniform:5",
                           "uniform:5,4",
                           "uniform:0,4",
                           "uniform:1,2,3",
                           "normal:5",
                           "normal:5,-1",
                           "normal:0,1",
                           "normal:5,1,9",
                           "normal:5,1,9,8",
                           "normal:nan,1",
                           "lognormal:5,1,0,8",
                           "poisson:5",
                           ":5",
                           "5,6"}) {
    CAPTURE(text);
    try {
      length_distribution::read(text, "--output-len");
      FAIL("it is read");
    } catch (const command_error& e) {
      CHECK(e.code() == exit_usage);
      CHECK(std::string{e.what()}.starts_with("--output-len: '"));
      CHECK_FALSE(e.problems().front().hint.empty());
    }
  }
}
