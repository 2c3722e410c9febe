/// The curve of latency against throughput of a sweep of rates, as a picture (V-M24).
#pragma once

#include "cli/bench/load/exports.hpp"

#include <string>
#include <vector>

namespace lamella::cli {

/// SVG for a light ground: TTFT and TPOT (median and P99) over the throughput of output tokens, a
/// point for each run with its rate beside it, limits in milliseconds as dashed lines; below, what
/// was answered and what was within the limits over the rate. Runs without answers are left out.
std::string latency_curve(const std::vector<bench_run>& runs);

/// A line for each run, under a head.
std::string sweep_head(const bench_serve_options& options);
std::string sweep_row(const bench_run& run);

} // namespace lamella::cli
