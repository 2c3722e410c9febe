/// Limits on the result of a serving benchmark, beyond which the command fails: for scripts.
#pragma once

#include "cli/bench/bench_report.hpp"

#include <string>
#include <vector>

namespace lamella::cli {

/// `ttft_p99>500ms`: what is measured, on which side of the limit it fails, and the limit.
struct bench_limit {
  std::string text; ///< as it was written
  std::string figure;
  bool above = true; ///< fails above the limit; else below
  double limit = 0;  ///< latencies in milliseconds
};

/// Reads FIGURE>LIMIT or FIGURE<LIMIT. Figures: ttft, tpot, itl (also tbt) and e2el with _mean,
/// _p50, _p90, _p95, _p99, _max or _min, limits in ms (or s, us); ttft_slowdown, tpot_slowdown and
/// e2el_slowdown with the same, limits without a unit, as have request_throughput,
/// output_throughput, total_throughput, goodput and failed. Throws
/// command_error (2).
bench_limit read_limit(const std::string& text);

/// Those that do not hold, in words with the value. A figure that has no value breaks its limit.
std::vector<std::string> broken_limits(const std::vector<bench_limit>& limits,
                                       const bench_summary& x);

} // namespace lamella::cli
