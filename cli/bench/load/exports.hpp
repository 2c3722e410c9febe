/// The results of a serving benchmark under the names that other programs use.
#pragma once

#include "cli/bench/bench_report.hpp"

#include <string>
#include <vector>

namespace lamella::cli {

/// A run and what it was asked.
struct bench_run {
  bench_serve_options options;
  bench_result result;
  bench_summary summary;
};

/// As `profile_export_aiperf.json` of AIPerf: a member for each metric, with unit, avg, min, max,
/// std and p1 to p99. Its inter_token_latency is a request's mean, so it is TPOT here.
std::string aiperf_json(const bench_run& run);

/// As `benchmarks.json` of GuideLLM 0.8, so that `guidellm export` loads it: a list of runs, whose
/// metrics are distributions (mean, median, std_dev, percentiles) of successful requests, and their
/// requests. Rates are counted in windows of a second, requests in flight at 1,000 even times.
/// `url`: of the server.
std::string guidellm_json(const std::string& url, const std::vector<bench_run>& runs);

} // namespace lamella::cli
