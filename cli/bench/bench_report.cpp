#include "cli/bench/bench_report.hpp"

#include "cli/bench/load/figures.hpp"
#include "cli/bench/load/slo.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <set>

namespace lamella::cli {

namespace {

bool is_open(const bench_serve_options& options) {
  return options.rate || options.trace_arrivals();
}

void add_warnings(bench_summary& x, const bench_result& result,
                  const bench_serve_options& options) {
  x.warnings = result.notes;
  char text[200];
  constexpr double busy = 0.8, late_ms = 1, kept_up = 0.95;
  if (result.cpu_share > busy || result.lag_p99_ms > late_ms) {
    std::snprintf(
        text, sizeof text,
        "CLIENT-LIMITED: this program used %.0f %% of a core and was %.1f ms late (p99)%s; "
        "latencies include this delay",
        result.cpu_share * 100, result.lag_p99_ms,
        result.cpu_share > busy ? "" : " because the processors were taken");
    x.warnings.emplace_back(text);
  }
  // Turns behind the first come when the server has answered: no rate of theirs is offered.
  if (is_open(options) && options.turns == 1 && x.offered_rate > 0
      && x.request_throughput < kept_up * x.offered_rate) {
    std::snprintf(text, sizeof text,
                  "SATURATED: %.2f requests/s arrived, %.2f were answered; latencies grow with the "
                  "length of the run",
                  x.offered_rate, x.request_throughput);
    x.warnings.emplace_back(text);
  }
  if (!result.shares_prefixes && x.cached_tokens * 2 > x.input_tokens)
    x.warnings.emplace_back("most prompt tokens were in the server's prefix cache, which shortens "
                            "TTFT; use another --seed for other prompts");
  if (x.failed > 0) x.warnings.emplace_back("latencies and throughput exclude failed requests");
  uint64_t pieces = 0;
  for (const auto& r : result.records)
    if (r.error.empty()) pieces += r.pieces;
  if ((options.goodput.ms.contains("tpot") || options.goodput.slowdown.contains("tpot"))
      && x.tpot.count < x.completed)
    x.warnings.push_back("goodput: the limit on tpot does not apply to "
                         + std::to_string(x.completed - x.tpot.count) + " answers of one token");
  if (pieces > 0 && pieces * 10 < x.output_tokens * 9)
    x.warnings.emplace_back("many events held several tokens: inter-token latency is per event");
  if (result.interrupted)
    x.warnings.emplace_back("interrupted: unfinished requests are not counted");
}

} // namespace

latency_summary summarize(std::vector<double> values) {
  latency_summary x;
  x.count = values.size();
  if (values.empty()) return x;
  std::sort(values.begin(), values.end());
  const auto n = static_cast<double>(values.size());
  x.mean = x.std = 0;
  for (const double v : values) x.mean += v / n;
  for (const double v : values) x.std += (v - x.mean) * (v - x.mean) / n;
  x.std = std::sqrt(x.std);
  x.min = values.front();
  x.max = values.back();
  constexpr double half = 0.5, p90 = 0.9, p95 = 0.95, p99 = 0.99;
  x.median = percentile(values, half);
  x.p90 = percentile(values, p90);
  x.p95 = percentile(values, p95);
  x.p99 = percentile(values, p99);
  return x;
}

namespace {

void add_turns(bench_summary& x, const bench_result& result) {
  std::vector<double> first, later;
  std::set<uint64_t> conversations;
  for (const auto& r : result.records) {
    if (!r.error.empty()) continue;
    conversations.insert(r.conversation);
    (r.turn == 1 ? first : later).push_back(ttft_ms(r));
    if (r.turn == 1) continue;
    x.later_input_tokens += r.prompt_tokens;
    x.later_cached_tokens += r.cached_tokens;
  }
  x.conversations = conversations.size();
  x.ttft_first = summarize(std::move(first));
  x.ttft_later = summarize(std::move(later));
}

} // namespace

bench_summary summarize(const bench_result& result, const bench_serve_options& options) {
  bench_summary x;
  uint64_t good = 0;
  std::vector<double> ttfts, tpots, gaps, e2els;
  std::array<std::vector<double>, 3> slower;
  for (const auto& r : result.records) {
    if (!r.error.empty()) {
      ++x.failed;
      ++x.errors[r.error];
      continue;
    }
    ++x.completed;
    x.input_tokens += r.prompt_tokens;
    x.cached_tokens += r.cached_tokens;
    x.output_tokens += output_tokens_of(r);
    ttfts.push_back(ttft_ms(r));
    e2els.push_back(e2el_ms(r));
    if (output_tokens_of(r) > 1) tpots.push_back(tpot_ms(r));
    for (const float gap : r.gaps_ms) gaps.push_back(gap);
    good += keeps(r, options.goodput, result.alone) ? 1 : 0;
    if (result.alone.empty()) continue;
    const auto s = slowdowns_of(r, result.alone);
    slower[0].push_back(s.ttft);
    if (!std::isnan(s.tpot)) slower[1].push_back(s.tpot);
    slower[2].push_back(s.e2el);
  }
  const auto per_second = [&](uint64_t count) {
    return result.duration_s > 0 ? static_cast<double>(count) / result.duration_s : 0;
  };
  if (is_open(options) && result.arrivals_s > 0)
    x.offered_rate =
        static_cast<double>(std::ranges::count(result.records, 1u, &bench_record::turn))
        / result.arrivals_s;
  x.request_throughput = per_second(x.completed);
  x.goodput = per_second(good);
  x.output_throughput = per_second(x.output_tokens);
  x.total_throughput = per_second(x.output_tokens + x.input_tokens);
  x.ttft = summarize(std::move(ttfts));
  x.tpot = summarize(std::move(tpots));
  x.itl = summarize(std::move(gaps));
  x.e2el = summarize(std::move(e2els));
  x.ttft_slowdown = summarize(std::move(slower[0]));
  x.tpot_slowdown = summarize(std::move(slower[1]));
  x.e2el_slowdown = summarize(std::move(slower[2]));
  if (!result.alone.empty()) x.nine_slos = keep_nine_slos(result);
  if (options.turns > 1) add_turns(x, result);
  x.max_pause_ms = x.itl.max;
  add_warnings(x, result, options);
  return x;
}

namespace {

std::string slowdown_lines(const bench_summary& x) {
  std::string out;
  char text[120];
  for (const auto& [name, s] : {std::pair{"P50, P90, P99 of TTFT:", &x.ttft_slowdown},
                                std::pair{"P50, P90, P99 of TPOT:", &x.tpot_slowdown},
                                std::pair{"P50, P90, P99 of E2EL:", &x.e2el_slowdown}}) {
    std::snprintf(text, sizeof text, "%-40s %.2f %.2f %.2f\n", name, s->median, s->p90, s->p99);
    out += text;
  }
  std::snprintf(text, sizeof text, "%-40s %s\n",
                "Nine SLOs of Splitwise:", *x.nine_slos ? "kept" : "broken");
  return out + text;
}

std::string turn_lines(const bench_summary& x) {
  std::string out;
  char text[120];
  for (const auto& [name, s] : {std::pair{"Mean TTFT of first turns (ms):", &x.ttft_first},
                                std::pair{"Mean TTFT of later turns (ms):", &x.ttft_later}}) {
    char number[48] = "-";
    if (s->count > 0) std::snprintf(number, sizeof number, "%.2f", s->mean);
    std::snprintf(text, sizeof text, "%-40s %-10s\n", name, number);
    out += text;
  }
  std::snprintf(text, sizeof text, "%-40s %-10llu\n",
                "Conversations:", static_cast<unsigned long long>(x.conversations));
  return out + text;
}

} // namespace

std::string console_block(const bench_summary& x, const bench_result& result,
                          const bench_serve_options& options) {
  constexpr size_t width = 50;
  std::string out;
  char text[120];
  const auto line = [&](const std::string& name, const char* format, auto value) {
    char number[48] = "-";
    if (!std::isnan(static_cast<double>(value)))
      std::snprintf(number, sizeof number, format, value);
    std::snprintf(text, sizeof text, "%-40s %-10s\n", name.c_str(), number);
    out += text;
  };
  const auto count = [&](const std::string& name, uint64_t value) {
    line(name, "%llu", static_cast<unsigned long long>(value));
  };
  const auto title = [&](const std::string& name, char fill) {
    const auto spaced = name.empty() ? name : " " + name + " ";
    const auto before = (width - std::min(width, spaced.size())) / 2;
    out += std::string(before, fill) + spaced
           + std::string(width - std::min(width, before + spaced.size()), fill) + "\n";
  };
  const auto section = [&](const std::string& name, const std::string& word,
                           const latency_summary& s) {
    title(name, '-');
    line("Mean " + word + " (ms):", "%.2f", s.mean);
    line("Median " + word + " (ms):", "%.2f", s.median);
    line("P99 " + word + " (ms):", "%.2f", s.p99);
  };
  title("Serving Benchmark Result", '=');
  count("Successful requests:", x.completed);
  count("Failed requests:", x.failed);
  for (const auto& [code, number] : x.errors) count("  " + code + ":", number);
  if (options.rate)
    line("Request rate configured (RPS):", "%.2f", *options.rate);
  else if (options.trace_arrivals())
    line("Request rate of the trace (RPS):", "%.2f", x.offered_rate);
  else
    count("Maximum request concurrency:", options.concurrency);
  line("Benchmark duration (s):", "%.2f", result.duration_s);
  count("Total input tokens:", x.input_tokens);
  count("  of these in the server's cache:", x.cached_tokens);
  count("Total generated tokens:", x.output_tokens);
  line("Request throughput (req/s):", "%.2f", x.request_throughput);
  if (!options.goodput.empty()) line("Request goodput (req/s):", "%.2f", x.goodput);
  line("Output token throughput (tok/s):", "%.2f", x.output_throughput);
  line("Total token throughput (tok/s):", "%.2f", x.total_throughput);
  section("Time to First Token", "TTFT", x.ttft);
  if (options.turns > 1) out += turn_lines(x);
  section("Time per Output Token (excl. 1st token)", "TPOT", x.tpot);
  section("Inter-token Latency", "ITL", x.itl);
  line("Longest pause in a stream (ms):", "%.2f", x.max_pause_ms);
  section("End-to-end Latency", "E2EL", x.e2el);
  if (x.nine_slos) {
    title("Slowdown against a request alone", '-');
    out += slowdown_lines(x);
  }
  title("", '=');
  for (const auto& warning : x.warnings) out += "note: " + warning + "\n";
  return out;
}

} // namespace lamella::cli
