/// `lamella bench compare`: what two servers make of the same requests, in turns.
#pragma once

#include "cli/bench/bench_record.hpp"

#include <array>
#include <string>
#include <vector>

namespace lamella::cli {

/// The same requests at both servers, one after the other.
struct compared_round {
  bench_result a, b;
};

/// A figure of both servers over all rounds. No number (NaN) where there is none.
struct compared_figure {
  std::string name, unit;
  double a = 0, b = 0;
  double ratio = 0;         ///< of b to a
  double low = 0, high = 0; ///< 95 % of the ratios of resampled rounds lie between
};

constexpr uint32_t bootstrap_resamples = 10'000;

/// With fewer rounds a bootstrap tells too little of how much rounds differ.
constexpr uint32_t enough_rounds = 10;

/// Throughput of output tokens, mean TTFT and mean TBT (gaps between pieces of text). Latencies are
/// of requests that both servers answered. The interval is a paired bootstrap of whole rounds, by
/// the seed: what slows a machine for seconds is in both servers' part of a round.
std::array<compared_figure, 3> compare(const std::vector<compared_round>& rounds, uint64_t seed);

/// What was compared, for the reports.
struct comparison {
  std::string url_a, url_b;
  bench_serve_options options_a, options_b; ///< of the whole; the first round's seed
  std::vector<compared_round> rounds;
  std::array<compared_figure, 3> figures;
};

/// A table of the figures, and notes.
std::string comparison_block(const comparison& x);

/// The figures, and each round of each server as `bench serve` writes it; `records`: with all of
/// their requests.
std::string comparison_json(const comparison& x, bool records);

} // namespace lamella::cli
