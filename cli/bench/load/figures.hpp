/// The figures of one request, as the client saw it.
#pragma once

#include "cli/bench/bench_record.hpp"

#include <functional>
#include <limits>
#include <vector>

namespace lamella::cli {

/// What a request has not; null in JSON, "-" in the block.
constexpr double no_number = std::numeric_limits<double>::quiet_NaN();

/// In milliseconds, from the intended send.
double ttft_ms(const bench_record& r);
double e2el_ms(const bench_record& r);
/// Time per output token but the first; no number where there is only one.
double tpot_ms(const bench_record& r);

/// As the server counts, else the pieces of text.
uint64_t output_tokens_of(const bench_record& r);

double prompt_tokens(const bench_record& r);
/// As output_tokens_of().
double output_tokens(const bench_record& r);

using record_figure = std::function<double(const bench_record&)>;
/// Values of one figure over the successful requests that have it, sorted.
std::vector<double> values_of(const bench_result& result, const record_figure& figure);

/// At q of the way through sorted values, between neighbours in a straight line; no number of none.
double percentile(const std::vector<double>& sorted, double q);

} // namespace lamella::cli
