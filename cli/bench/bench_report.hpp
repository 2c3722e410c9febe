/// The results of a serving benchmark, as text and as JSON.
#pragma once

#include "cli/bench/bench_serve.hpp"

#include <limits>
#include <map>
#include <string>
#include <vector>

namespace lamella::cli {

/// Of one latency, over the requests (or gaps) that have it; milliseconds. Of no values, every
/// figure is no number (NaN): null in JSON, "-" in the block.
struct latency_summary {
  static constexpr double nothing = std::numeric_limits<double>::quiet_NaN();
  size_t count = 0;
  double mean = nothing, median = nothing, std = nothing, min = nothing, max = nothing;
  double p90 = nothing, p95 = nothing, p99 = nothing;
};

/// Percentiles with linear interpolation.
latency_summary summarize(std::vector<double> values);

struct bench_summary {
  uint64_t completed = 0, failed = 0;
  uint64_t input_tokens = 0, output_tokens = 0;
  uint64_t cached_tokens = 0; ///< of the input
  double offered_rate = 0;    ///< requests per second, of an open loop
  double request_throughput = 0, goodput = 0, output_throughput = 0, total_throughput = 0;
  latency_summary ttft, tpot, itl, e2el;
  uint64_t conversations = 0; ///< with a successful turn, where requests are turns; else 0
  latency_summary ttft_first, ttft_later; ///< of first turns, and of those behind them
  uint64_t later_input_tokens = 0, later_cached_tokens = 0;    ///< of turns behind the first
  latency_summary ttft_slowdown, tpot_slowdown, e2el_slowdown; ///< no times, but multiples
  std::optional<bool> nine_slos; ///< those of Splitwise, where slowdowns were measured
  double max_pause_ms = latency_summary::nothing; ///< between two events of a stream
  std::map<std::string, uint64_t> errors;         ///< by code
  std::vector<std::string> warnings;              ///< notes of the run, CLIENT-LIMITED, SATURATED
};

/// Only successful requests have latencies and tokens; times run from the intended send.
bench_summary summarize(const bench_result& result, const bench_serve_options& options);

/// The result block in the format of other serving benchmarks.
std::string console_block(const bench_summary& x, const bench_result& result,
                          const bench_serve_options& options);

/// Flat keys; `records` adds an array per latency, with one entry per request.
std::string bench_json(const bench_summary& x, const bench_result& result,
                       const bench_serve_options& options, bool records);

} // namespace lamella::cli
