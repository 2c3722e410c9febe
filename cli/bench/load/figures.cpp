#include "cli/bench/load/figures.hpp"

#include <algorithm>
#include <cmath>

namespace lamella::cli {

namespace {

double milliseconds(bench_record::time x) { return static_cast<double>(x.count()) / 1e6; }

} // namespace

double ttft_ms(const bench_record& r) { return milliseconds(r.first - r.intended); }
double e2el_ms(const bench_record& r) { return milliseconds(r.end - r.intended); }

double tpot_ms(const bench_record& r) {
  const auto tokens = output_tokens_of(r);
  return tokens < 2 ? no_number : (e2el_ms(r) - ttft_ms(r)) / static_cast<double>(tokens - 1);
}

uint64_t output_tokens_of(const bench_record& r) {
  return r.usage ? r.completion_tokens : r.pieces;
}

double percentile(const std::vector<double>& sorted, double q) {
  if (sorted.empty()) return no_number;
  const double at = q * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<size_t>(at);
  const auto above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (sorted[above] - sorted[below]) * (at - static_cast<double>(below));
}

double prompt_tokens(const bench_record& r) { return static_cast<double>(r.prompt_tokens); }

double output_tokens(const bench_record& r) { return static_cast<double>(output_tokens_of(r)); }

std::vector<double> values_of(const bench_result& result, const record_figure& figure) {
  std::vector<double> all;
  for (const auto& r : result.records)
    if (r.error.empty())
      if (const double x = figure(r); !std::isnan(x)) all.push_back(x);
  std::sort(all.begin(), all.end());
  return all;
}

} // namespace lamella::cli
