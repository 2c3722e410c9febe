// `lamella bench serve --fail-if`: which limits are read, and which results break them.
#include "cli/bench/bench_limits.hpp"
#include "cli/commands.hpp"

#include <doctest/doctest.h>

using namespace lamella::cli;

namespace {

std::vector<std::string> broken(const std::vector<std::string>& texts, const bench_summary& x) {
  std::vector<bench_limit> limits;
  for (const auto& text : texts) limits.push_back(read_limit(text));
  return broken_limits(limits, x);
}

} // namespace

TEST_CASE("a limit names a figure, a side and a number, with a unit where it is a time") {
  const auto x = read_limit("ttft_p99>500ms");
  CHECK(x.figure == "ttft_p99");
  CHECK(x.above);
  CHECK(x.limit == 500);
  CHECK(read_limit("itl_max>1.5s").limit == 1500);
  CHECK(read_limit("tpot_mean>250us").limit == 0.25);
  CHECK(read_limit("e2el_p50>7").limit == 7);
  CHECK_FALSE(read_limit("output_throughput<1e3").above);
  CHECK(read_limit("failed>0").limit == 0);
}

TEST_CASE("what is no limit is refused with what to write instead") {
  for (const char* text :
       {"", "ttft_p99", "ttft_p99=5", "ttft>5ms", ">5", "ttft_p99>", "ttft_p99>ms", "ttft_p99>5m",
        "ttft_p99>-1", "ttft_p99>nan", "ttft_p99>inf", "failed>1ms", "ttft_p99>>5", "ttft_p98>5"}) {
    CAPTURE(text);
    try {
      read_limit(text);
      FAIL("it is read");
    } catch (const command_error& e) {
      CHECK(e.code() == exit_usage);
      CHECK(std::string{e.what()}.starts_with("--fail-if: '"));
      CHECK_FALSE(e.problems().front().hint.empty());
    }
  }
}

TEST_CASE("results beyond a limit break it, and so do figures without a value") {
  bench_summary x;
  x.ttft = summarize(std::vector<double>{100, 600});
  x.output_throughput = 900;
  CHECK(
      broken({"ttft_max>600ms", "ttft_min<100ms", "output_throughput<900", "failed>0"}, x).empty());
  CHECK(broken({"ttft_max>599.9ms"}, x)
        == std::vector<std::string>{"ttft_max is 600 ms: --fail-if ttft_max>599.9ms"});
  CHECK(broken({"output_throughput<1000"}, x)
        == std::vector<std::string>{"output_throughput is 900: --fail-if output_throughput<1000"});
  CHECK(broken({"tbt_p99>1000s"}, x)
        == std::vector<std::string>{"tbt_p99 is no value: --fail-if tbt_p99>1000s"});
}
