#include "cli/bench/load/exports.hpp"

#include "base/json_writer.hpp"
#include "cli/bench/load/figures.hpp"

#include <algorithm>
#include <cmath>
#include <functional>

namespace lamella::cli {

namespace {

/// Sorted values of one figure over the successful requests that have it.
std::vector<double> values_of(const bench_run& run,
                              const std::function<double(const bench_record&)>& figure) {
  std::vector<double> all;
  for (const auto& r : run.result.records)
    if (r.error.empty())
      if (const double x = figure(r); !std::isnan(x)) all.push_back(x);
  std::sort(all.begin(), all.end());
  return all;
}

std::vector<double> gaps_of(const bench_run& run) {
  std::vector<double> all;
  for (const auto& r : run.result.records)
    if (r.error.empty()) all.insert(all.end(), r.gaps_ms.begin(), r.gaps_ms.end());
  std::sort(all.begin(), all.end());
  return all;
}

double prompt_tokens(const bench_record& r) { return static_cast<double>(r.prompt_tokens); }
double output_tokens(const bench_record& r) { return static_cast<double>(output_tokens_of(r)); }
double all_tokens(const bench_record& r) { return prompt_tokens(r) + output_tokens(r); }

/// Of the metrics that are no distribution.
void write_one(json_writer& out, const char* name, const char* unit, double value) {
  out.key(name).begin_object().member("unit", unit).member("avg", value).end_object();
}

void write_aiperf(json_writer& out, const char* name, const char* unit,
                  const std::vector<double>& sorted) {
  const auto x = summarize(sorted);
  out.key(name).begin_object().member("unit", unit).member("avg", x.mean);
  for (const int p : {1, 5, 10, 25, 50, 75, 90, 95, 99})
    out.member("p" + std::to_string(p), percentile(sorted, p / 100.0));
  out.member("min", x.min).member("max", x.max).member("std", x.std).end_object();
}

void write_guidellm(json_writer& out, const char* name, const std::vector<double>& sorted) {
  const auto x = summarize(sorted);
  double sum = 0;
  for (const double v : sorted) sum += v;
  out.key(name).begin_object().key("successful").begin_object().member("mean", x.mean);
  out.member("median", x.median).member("variance", x.std * x.std).member("std_dev", x.std);
  out.member("min", x.min).member("max", x.max).member("count", x.count);
  out.member("total_sum", sum).key("percentiles").begin_object();
  constexpr std::pair<const char*, double> points[] = {
      {"p001", .001}, {"p01", .01}, {"p05", .05}, {"p10", .1},  {"p25", .25},  {"p50", .5},
      {"p75", .75},   {"p90", .9},  {"p95", .95}, {"p99", .99}, {"p999", .999}};
  for (const auto& [key, q] : points) out.member(key, percentile(sorted, q));
  out.end_object().end_object().end_object();
}

void write_rate(json_writer& out, const char* name, double value) {
  out.key(name).begin_object().key("successful").begin_object().member("mean", value);
  out.end_object().end_object();
}

void write_lamella(json_writer& out, const bench_run& run) {
  out.key("lamella").raw(bench_json(run.summary, run.result, run.options, false));
}

void write_guidellm_run(json_writer& out, const bench_run& run) {
  out.begin_object().member("duration", run.result.duration_s).key("metrics").begin_object();
  out.key("request_totals").begin_object().member("successful", run.summary.completed);
  out.member("errored", run.summary.failed).member("incomplete", 0);
  out.member("total", run.result.records.size()).end_object();
  write_rate(out, "requests_per_second", run.summary.request_throughput);
  write_rate(out, "output_tokens_per_second", run.summary.output_throughput);
  write_rate(out, "tokens_per_second", run.summary.total_throughput);
  const auto seconds = [](const bench_record& r) { return e2el_ms(r) / 1e3; };
  write_guidellm(out, "request_latency", values_of(run, seconds));
  write_guidellm(out, "prompt_token_count", values_of(run, prompt_tokens));
  write_guidellm(out, "output_token_count", values_of(run, output_tokens));
  write_guidellm(out, "total_token_count", values_of(run, all_tokens));
  write_guidellm(out, "time_to_first_token_ms", values_of(run, ttft_ms));
  write_guidellm(out, "time_per_output_token_ms", values_of(run, [](const bench_record& r) {
                   return e2el_ms(r) / std::max(output_tokens(r), 1.0);
                 }));
  write_guidellm(out, "inter_token_latency_ms", values_of(run, tpot_ms));
  out.end_object();
  write_lamella(out, run);
  out.end_object();
}

} // namespace

std::string aiperf_json(const bench_run& run) {
  const auto& x = run.summary;
  json_writer out;
  out.begin_object();
  write_one(out, "request_throughput", "requests/sec", x.request_throughput);
  write_one(out, "request_count", "requests", static_cast<double>(x.completed));
  write_one(out, "error_request_count", "requests", static_cast<double>(x.failed));
  write_one(out, "output_token_throughput", "tokens/sec", x.output_throughput);
  write_one(out, "total_token_throughput", "tokens/sec", x.total_throughput);
  write_one(out, "benchmark_duration", "sec", run.result.duration_s);
  if (!run.options.goodput.empty()) write_one(out, "goodput", "requests/sec", x.goodput);
  write_aiperf(out, "request_latency", "ms", values_of(run, e2el_ms));
  write_aiperf(out, "time_to_first_token", "ms", values_of(run, ttft_ms));
  write_aiperf(out, "inter_token_latency", "ms", values_of(run, tpot_ms));
  write_aiperf(out, "inter_chunk_latency", "ms", gaps_of(run));
  write_aiperf(out, "input_sequence_length", "tokens", values_of(run, prompt_tokens));
  write_aiperf(out, "output_sequence_length", "tokens", values_of(run, output_tokens));
  out.member("was_cancelled", run.result.interrupted).key("error_summary").begin_array();
  for (const auto& [code, count] : x.errors) {
    out.begin_object().key("error_details").begin_object().member("message", code).end_object();
    out.member("count", count).end_object();
  }
  out.end_array();
  write_lamella(out, run);
  return out.end_object().take();
}

std::string guidellm_json(const std::vector<bench_run>& runs) {
  json_writer out;
  out.begin_object().key("benchmarks").begin_array();
  for (const auto& run : runs) write_guidellm_run(out, run);
  return out.end_array().end_object().take();
}

} // namespace lamella::cli
