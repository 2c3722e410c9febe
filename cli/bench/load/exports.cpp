#include "cli/bench/load/exports.hpp"

#include "base/json_writer.hpp"
#include "cli/bench/load/figures.hpp"

#include <algorithm>

namespace lamella::cli {

namespace {

std::vector<double> gaps_of(const bench_run& run) {
  std::vector<double> all;
  for (const auto& r : run.result.records)
    if (r.error.empty()) all.insert(all.end(), r.gaps_ms.begin(), r.gaps_ms.end());
  std::sort(all.begin(), all.end());
  return all;
}

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

void write_lamella(json_writer& out, const bench_run& run) {
  out.key("lamella").raw(bench_json(run.summary, run.result, run.options, false));
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
  write_aiperf(out, "request_latency", "ms", values_of(run.result, e2el_ms));
  write_aiperf(out, "time_to_first_token", "ms", values_of(run.result, ttft_ms));
  write_aiperf(out, "inter_token_latency", "ms", values_of(run.result, tpot_ms));
  write_aiperf(out, "inter_chunk_latency", "ms", gaps_of(run));
  write_aiperf(out, "input_sequence_length", "tokens", values_of(run.result, prompt_tokens));
  write_aiperf(out, "output_sequence_length", "tokens", values_of(run.result, output_tokens));
  out.member("was_cancelled", run.result.interrupted).key("error_summary").begin_array();
  for (const auto& [code, count] : x.errors) {
    out.begin_object().key("error_details").begin_object().member("message", code).end_object();
    out.member("count", count).end_object();
  }
  out.end_array();
  write_lamella(out, run);
  return out.end_object().take();
}

} // namespace lamella::cli
