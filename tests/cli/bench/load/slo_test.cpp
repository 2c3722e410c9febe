// Limits on latencies, in milliseconds and as slowdowns, and what a sweep of rates writes.
#include "base/json.hpp"
#include "cli/bench/load/curve.hpp"
#include "cli/bench/load/slo.hpp"
#include "cli/commands.hpp"

#include <doctest/doctest.h>

using namespace lamella::cli;
using std::chrono::milliseconds;

namespace {

/// `prompt` tokens, first text after `ttft` ms, then `tokens` - 1 pieces, one every `gap` ms.
bench_record record(uint64_t prompt, int ttft, int gap, uint32_t tokens) {
  bench_record r;
  r.first = r.last = milliseconds{ttft};
  r.pieces = tokens;
  for (uint32_t i = 1; i < tokens; ++i) {
    r.last += milliseconds{gap};
    r.gaps_ms.push_back(static_cast<float>(gap));
  }
  r.end = r.last;
  r.usage = true;
  r.prompt_tokens = prompt;
  r.completion_tokens = tokens;
  return r;
}

bench_run run_of(double rate, std::vector<bench_record> records) {
  bench_run run;
  run.options.rate = rate;
  run.options.model = "a<b>";
  run.options.goodput.ms = {{"ttft", 150}};
  run.result.duration_s = 2;
  run.result.records = std::move(records);
  run.summary = summarize(run.result, run.options);
  return run;
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

double at(const lamella::json_value& json, std::initializer_list<std::string_view> path) {
  return number_or(find_path(json, path), -1);
}

} // namespace

TEST_CASE("limits are milliseconds or slowdowns, by their names or their others") {
  const auto slos = read_slos({"ttft:500", "tbt:1.25x", "e2e:2000ms"});
  CHECK(slos.ms == std::map<std::string, double>{{"e2el", 2000}, {"ttft", 500}});
  CHECK(slos.slowdown == std::map<std::string, double>{{"tpot", 1.25}});
  for (const char* word : {"", "ttft", "ttft:", "ttft:x", "ttft:0", "ttft:-1x", "ttft:5s", "itl:5",
                           "ttft:5 x", "ttft:nan", "ttft:1e10"}) {
    CAPTURE(word);
    CHECK_THROWS_AS(read_slos({word}), command_error);
  }
}

TEST_CASE("S-M24 a slowdown is against a request alone of the same length") {
  const std::vector<bench_record> alone{record(100, 100, 10, 11), record(100, 90, 10, 11),
                                        record(300, 290, 20, 11)};
  // Between 90 ms at 100 tokens and 290 ms at 300; 15 ms a token.
  const auto x = slowdowns_of(record(200, 380, 30, 11), alone);
  CHECK(x.ttft == doctest::Approx(2));
  CHECK(x.tpot == doctest::Approx(2));
  CHECK(x.e2el == doctest::Approx((380 + 10 * 30) / (190 + 10 * 15.0)));
  CHECK(slowdowns_of(record(50, 90, 10, 11), alone).ttft == doctest::Approx(1));
  CHECK(slowdowns_of(record(900, 290, 10, 11), alone).ttft == doctest::Approx(1));
  CHECK(keeps(record(200, 380, 30, 11), read_slos({"ttft:2.1x", "tpot:2.1x"}), alone));
  CHECK_FALSE(keeps(record(200, 380, 30, 11), read_slos({"ttft:1.9x"}), alone));
  CHECK_FALSE(keeps(record(200, 380, 30, 11), read_slos({"ttft:2.1x", "tbt:29"}), alone));
  CHECK(keeps(record(200, 380, 0, 1), read_slos({"tpot:1.1x"}), alone)); // it has none
}

TEST_CASE("S-M24 nine limits on the slowdowns of a run") {
  bench_result result;
  result.alone = {record(100, 100, 10, 11)};
  result.duration_s = 1;
  result.records.assign(100, record(100, 120, 12, 11));
  CHECK(keep_nine_slos(result));
  CHECK(summarize(result, {}).nine_slos == true);
  CHECK(summarize(result, {}).ttft_slowdown.p99 == doctest::Approx(1.2));
  for (int i = 0; i < 3; ++i) result.records[i] = record(100, 120, 60, 11); // beyond P99 of TBT
  CHECK_FALSE(keep_nine_slos(result));
  const auto json = lamella::parse_json(bench_json(summarize(result, {}), result, {}, false));
  CHECK(at(json, {"lamella", "slowdowns", "ttft", "p50"}) == doctest::Approx(1.2));
  result.alone.clear();
  CHECK_FALSE(summarize(result, {}).nine_slos.has_value());
}

TEST_CASE("V-M24 a sweep becomes curves of latency over throughput") {
  const auto slow = run_of(1, {record(10, 100, 10, 11), record(10, 110, 10, 11)}),
             fast = run_of(4, {record(10, 200, 20, 11), record(10, 300, 30, 11)});
  auto none = run_of(8, {});
  const auto svg = latency_curve({slow, fast, none});
  CHECK(svg.starts_with("<svg "));
  CHECK(svg.ends_with("</svg>\n"));
  CHECK(has(svg, "a&lt;b&gt;"));
  CHECK(has(svg, ">1/s<"));
  CHECK(has(svg, ">4/s<"));
  CHECK_FALSE(has(svg, ">8/s<")); // without answers it has no latency
  CHECK(has(svg, "limit 150 ms"));
  CHECK(has(svg, "within limits"));
  CHECK_FALSE(has(svg, "nan"));
  CHECK(has(latency_curve({}), "no answers"));
  CHECK(has(sweep_head(slow.options), "goodput"));
  CHECK(has(sweep_row(slow), "105.0, 109.9"));
  CHECK(has(sweep_row(none), " - "));
}

TEST_CASE("results have the names that other programs' readers know") {
  auto run = run_of(1, {record(10, 100, 10, 11), record(30, 200, 10, 21)});
  auto failed = record(1, 1, 1, 1);
  failed.error = "429 queue_full";
  run.result.records.push_back(failed);
  run.summary = summarize(run.result, run.options);
  const auto aiperf = lamella::parse_json(aiperf_json(run));
  CHECK(at(aiperf, {"time_to_first_token", "avg"}) == doctest::Approx(150));
  CHECK(text_or(find_path(aiperf, {"time_to_first_token", "unit"}), "") == "ms");
  CHECK(at(aiperf, {"inter_token_latency", "p50"}) == doctest::Approx(10));
  CHECK(at(aiperf, {"request_latency", "max"}) == doctest::Approx(400));
  CHECK(at(aiperf, {"output_sequence_length", "avg"}) == doctest::Approx(16));
  CHECK(at(aiperf, {"output_token_throughput", "avg"}) == doctest::Approx(16));
  CHECK(at(aiperf, {"request_count", "avg"}) == 2);
  CHECK(text_or(find_path(aiperf, {"error_summary", "0", "error_details", "message"}), "")
        == "429 queue_full");
  const auto guide = lamella::parse_json(guidellm_json("http://127.0.0.1:8000", {run}));
  const auto* metrics = find_path(guide, {"benchmarks", "0", "metrics"});
  REQUIRE(metrics != nullptr);
  CHECK(at(*metrics, {"time_to_first_token_ms", "successful", "median"}) == doctest::Approx(150));
  CHECK(at(*metrics, {"request_latency", "successful", "mean"}) == doctest::Approx(0.3));
  CHECK(at(*metrics, {"inter_token_latency_ms", "successful", "percentiles", "p99"})
        == doctest::Approx(10));
  CHECK(at(*metrics, {"request_totals", "errored"}) == 1);
}

// Its own program refuses a report that lacks one of these.
TEST_CASE("a report for GuideLLM has every member that its reader wants") {
  auto run = run_of(2, {record(10, 100, 10, 11)});
  run.result.began_unix_s = 1e9;
  run.result.records.push_back(record(1, 1, 1, 1));
  run.result.records.back().error = "429 queue_full";
  run.result.records.back().pieces = 0;
  run.summary = summarize(run.result, run.options);
  const auto report = lamella::parse_json(guidellm_json("http://127.0.0.1:8000", {run}));
  CHECK(text_or(find_path(report, {"config", "spec", "backend", "target"}), "")
        == "http://127.0.0.1:8000");
  CHECK(text_or(find_path(report, {"config", "spec", "profile", "kind"}), "") == "poisson");
  CHECK(at(report, {"config", "spec", "data", "0", "prompt_tokens"}) == 10);
  const auto* one = find_path(report, {"benchmarks", "0"});
  REQUIRE(one != nullptr);
  CHECK(at(*one, {"config", "strategy", "rate"}) == 2);
  for (const char* name :
       {"run_id", "run_index", "constraints", "profile", "requests", "backend", "environment"})
    CHECK_MESSAGE(find_path(*one, {"config", name}) != nullptr, name);
  CHECK(at(*one, {"scheduler_metrics", "start_time"}) == 1e9);
  CHECK(at(*one, {"scheduler_metrics", "requests_made", "errored"}) == 1);
  for (const char* name :
       {"requests_per_second", "request_concurrency", "request_latency",
        "request_streaming_iterations_count", "prompt_token_count", "output_token_count",
        "total_token_count", "time_to_first_token_ms", "time_to_first_output_token_ms",
        "time_per_output_token_ms", "inter_token_latency_ms", "time_to_last_round_trip_ms",
        "avg_round_trip_time_ms", "prompt_tokens_per_second", "output_tokens_per_second",
        "tokens_per_second", "output_tokens_per_iteration", "iter_tokens_per_iteration"})
    for (const char* of : {"successful", "incomplete", "errored", "total"})
      CHECK_MESSAGE(find_path(*one, {"metrics", name, of, "percentiles", "p50"}) != nullptr, name);
  for (const char* name : {"text", "image", "video", "audio", "tool_call"})
    CHECK_MESSAGE(find_path(*one, {"metrics", name, "tokens"}) != nullptr, name);
  CHECK(at(*one, {"requests", "successful", "0", "info", "timings", "first_token_iteration"})
        == doctest::Approx(1e9 + 0.1));
  CHECK(text_or(find_path(*one, {"requests", "errored", "0", "info", "error"}), "")
        == "429 queue_full");
}
