// The numbers of `lamella bench serve`, from records written by hand.
#include "base/json.hpp"
#include "cli/bench/bench_report.hpp"
#include "cli/bench/bench_request.hpp"
#include "tests/scratch_folder.hpp"

#include <doctest/doctest.h>

#include <fstream>

using namespace lamella::cli;
using lamella::tests::scratch_folder;
using std::chrono::milliseconds;

namespace {

/// Sent at `at` ms, first text after `ttft`, then a piece every `gap` ms.
bench_record record(int at, int ttft, int gap, uint32_t tokens) {
  bench_record r;
  r.intended = r.sent = milliseconds{at};
  r.first = r.last = milliseconds{at + ttft};
  r.pieces = tokens;
  for (uint32_t i = 1; i < tokens; ++i) {
    r.last += milliseconds{gap};
    r.gaps_ms.push_back(static_cast<float>(gap));
  }
  r.end = r.last;
  r.usage = true;
  r.prompt_tokens = 10;
  r.completion_tokens = tokens;
  return r;
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

} // namespace

TEST_CASE("percentiles lie between neighbours in a straight line") {
  std::vector<double> values;
  for (int i = 100; i >= 1; --i) values.push_back(i);
  const auto x = summarize(values);
  CHECK(x.count == 100);
  CHECK(x.mean == doctest::Approx(50.5));
  CHECK(x.median == doctest::Approx(50.5));
  CHECK(x.p90 == doctest::Approx(90.1));
  CHECK(x.p99 == doctest::Approx(99.01));
  CHECK(x.min == 1);
  CHECK(x.max == 100);
  CHECK(summarize(std::vector<double>{7}).p99 == 7);
  CHECK(summarize(std::vector<double>{}).count == 0);
}

TEST_CASE("answers of one token have no time between tokens, and nothing says they have") {
  bench_result result;
  result.duration_s = 1;
  result.records = {record(0, 100, 0, 1), record(500, 300, 0, 1)};
  bench_serve_options options;
  options.goodput.ms = {{"tpot", 1}};
  const auto x = summarize(result, options);
  CHECK(x.tpot.count == 0);
  CHECK(x.goodput == doctest::Approx(2));
  const auto block = console_block(x, result, options);
  CHECK(has(block, "Mean TPOT (ms):                          -         \n"));
  CHECK(has(block, "P99 ITL (ms):                            -         \n"));
  CHECK(has(block, "Longest pause in a stream (ms):          -         \n"));
  CHECK(has(block, "the limit on tpot does not apply to 2 answers of one token"));
  const auto json = lamella::parse_json(bench_json(x, result, options, false));
  for (const char* name : {"mean_tpot_ms", "std_tpot_ms", "p99_itl_ms", "max_itl_ms"}) {
    CAPTURE(name);
    REQUIRE(json.find(name) != nullptr);
    CHECK(json.find(name)->is_null());
  }
  CHECK(number_or(json.find("mean_ttft_ms"), 0) == doctest::Approx(200));
}

TEST_CASE("prefix cache: whoever measures prompts that the server knows is told") {
  bench_result result;
  result.duration_s = 2;
  result.records = {record(0, 100, 10, 11), record(500, 300, 20, 11)};
  const auto told = [&](uint64_t cached) {
    result.records[0].cached_tokens = cached;
    const auto x = summarize(result, {});
    CHECK(x.cached_tokens == cached);
    const auto page = console_block(x, result, {});
    CHECK(page.find("of these in the server's cache:") != std::string::npos);
    return std::any_of(x.warnings.begin(), x.warnings.end(),
                       [](const auto& w) { return w.find("prefix cache") != std::string::npos; });
  };
  CHECK_FALSE(told(0));
  CHECK_FALSE(told(10));
  CHECK(told(11));
}

TEST_CASE("a summary has latencies of successes, and failures by code") {
  bench_result result;
  result.duration_s = 2;
  result.records = {record(0, 100, 10, 11), record(500, 300, 20, 11)};
  auto failed = record(600, 1, 1, 1);
  failed.error = "429 queue_full";
  result.records.push_back(failed);
  bench_serve_options options;
  options.goodput.ms = {{"ttft", 200}, {"tpot", 15}};
  const auto x = summarize(result, options);
  CHECK(x.completed == 2);
  CHECK(x.failed == 1);
  CHECK(x.errors.at("429 queue_full") == 1);
  CHECK(x.input_tokens == 20);
  CHECK(x.cached_tokens == 0);
  CHECK(x.output_tokens == 22);
  CHECK(x.request_throughput == doctest::Approx(1));
  CHECK(x.output_throughput == doctest::Approx(11));
  CHECK(x.total_throughput == doctest::Approx(21));
  CHECK(x.goodput == doctest::Approx(0.5)); // the second is late
  CHECK(x.ttft.mean == doctest::Approx(200));
  CHECK(x.tpot.mean == doctest::Approx(15));
  CHECK(x.itl.count == 20);
  CHECK(x.e2el.max == doctest::Approx(500));
  CHECK(x.max_pause_ms == doctest::Approx(20));
  const auto block = console_block(x, result, options);
  CHECK(has(block, "============ Serving Benchmark Result ============\n"));
  CHECK(has(block, "Failed requests:                         1         \n"));
  CHECK(has(block, "  429 queue_full:                        1         \n"));
  CHECK(has(block, "Mean TTFT (ms):                          200.00    \n"));
  CHECK(has(block, "latencies and throughput exclude failed requests"));
  const auto json = lamella::parse_json(bench_json(x, result, options, true));
  CHECK(number_or(json.find("mean_ttft_ms"), 0) == doctest::Approx(200));
  CHECK(number_or(find_path(json, {"ttfts", "1"}), 0) == doctest::Approx(0.3));
  CHECK(text_or(find_path(json, {"errors", "2"}), "") == "429 queue_full");
}

TEST_CASE("the file says which lengths were asked for, and nothing where a file did") {
  const auto lengths = [](const bench_serve_options& options) {
    const bench_result none;
    return lamella::parse_json(bench_json(summarize(none, options), none, options, false));
  };
  bench_serve_options options;
  CHECK(number_or(find_path(lengths(options), {"lamella", "input_tokens"}), 0) == 128);
  options.output_len = length_distribution::read("uniform:1,9", "--output-len");
  CHECK(text_or(find_path(lengths(options), {"lamella", "output_tokens"}), "") == "uniform:1,9");
  options.trace = "azure_conv_2023";
  const auto traced = lengths(options);
  CHECK(find_path(traced, {"lamella", "input_tokens"})->is_null());
  CHECK(find_path(traced, {"lamella", "output_tokens"})->is_null());
}

TEST_CASE("latency runs from the intended send, so a stalled server is not excused") {
  bench_result result;
  result.duration_s = 1;
  auto late = record(100, 50, 1, 2);
  late.sent = milliseconds{140};
  result.records = {late};
  CHECK(summarize(result, {}).ttft.mean == doctest::Approx(50));
}

TEST_CASE("a busy client and a server that falls behind are told") {
  bench_result result;
  result.duration_s = 10;
  result.arrivals_s = 1;
  result.lag_p99_ms = 3;
  result.records = {record(0, 1, 1, 2), record(1000, 1, 1, 2)};
  bench_serve_options options;
  options.rate = 2;
  const auto block = console_block(summarize(result, options), result, options);
  CHECK(has(block, "CLIENT-LIMITED"));
  CHECK(has(block, "SATURATED"));
  CHECK(has(block, "Request rate configured (RPS):           2.00"));
}

TEST_CASE("Poisson arrivals have their rate and repeat with their seed") {
  constexpr int count = 20'000;
  poisson_arrivals first{50, 7}, again{50, 7}, other{50, 8};
  std::chrono::nanoseconds last{0};
  bool differs = false;
  for (int i = 0; i < count; ++i) {
    const auto next = first.next();
    REQUIRE(next >= last);
    REQUIRE(next == again.next());
    differs = differs || next != other.next();
    last = next;
  }
  CHECK(differs);
  // The sum of n gaps has the relative deviation 1 / sqrt(n): here five of them.
  CHECK(std::chrono::duration<double>(last).count()
        == doctest::Approx(count / 50.0).epsilon(0.035));
}

TEST_CASE("prompts come from the lines of a file, in turn") {
  const scratch_folder folder;
  std::ofstream{folder / "prompts"} << "one\n\ntwo\r\nthree";
  const auto prompts = prompt_source::from_file((folder / "prompts").string());
  CHECK(prompts.prompt(0) == "one");
  CHECK(prompts.prompt(1) == "two");
  CHECK(prompts.prompt(2) == "three");
  CHECK(prompts.prompt(3) == "one");
  CHECK_THROWS_AS(prompt_source::from_file((folder / "none").string()), command_error);
  std::ofstream{folder / "empty"} << "\n\n";
  CHECK_THROWS_AS(prompt_source::from_file((folder / "empty").string()), command_error);
}

TEST_CASE("only events with text count as pieces") {
  const auto at = [](int ms) { return milliseconds{ms}; };
  bench_record r;
  read_event(r, R"({"choices":[{"delta":{"role":"assistant","content":""}}]})", at(1));
  CHECK(r.pieces == 0);
  read_event(r, R"({"choices":[{"delta":{"content":"a"}}]})", at(5));
  read_event(r, R"({"choices":[{"text":"b"}]})", at(9));
  read_event(r, R"({"choices":[{"delta":{},"finish_reason":"length"}]})", at(10));
  read_event(r, R"({"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":2}})", at(11));
  CHECK(r.pieces == 2);
  CHECK(r.first == at(5));
  CHECK(r.gaps_ms == std::vector<float>{4});
  CHECK(r.finish == "length");
  CHECK(r.prompt_tokens == 3);
  CHECK(r.completion_tokens == 2);
  CHECK(r.error.empty());
  read_event(r, R"({"error":{"message":"m","type":"t","param":null,"code":"draining"}})", at(12));
  CHECK(r.error == "stream_error draining");
  read_event(r, "{", at(13));
  CHECK(r.error == "invalid_event");
}
