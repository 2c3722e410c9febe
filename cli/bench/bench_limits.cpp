#include "cli/bench/bench_limits.hpp"

#include "cli/commands.hpp"
#include "config/nearest.hpp"

#include <charconv>
#include <cmath>
#include <cstdio>
#include <map>

namespace lamella::cli {

namespace {

using reader = double (*)(const bench_summary&);

template <latency_summary bench_summary::*Of> void add_latency(const std::string& name, auto& to) {
  to[name + "_mean"] = [](const bench_summary& x) { return (x.*Of).mean; };
  to[name + "_p50"] = [](const bench_summary& x) { return (x.*Of).median; };
  to[name + "_p90"] = [](const bench_summary& x) { return (x.*Of).p90; };
  to[name + "_p95"] = [](const bench_summary& x) { return (x.*Of).p95; };
  to[name + "_p99"] = [](const bench_summary& x) { return (x.*Of).p99; };
  to[name + "_max"] = [](const bench_summary& x) { return (x.*Of).max; };
  to[name + "_min"] = [](const bench_summary& x) { return (x.*Of).min; };
}

std::map<std::string, reader> make_latencies() {
  std::map<std::string, reader> all;
  add_latency<&bench_summary::ttft>("ttft", all);
  add_latency<&bench_summary::tpot>("tpot", all);
  add_latency<&bench_summary::itl>("itl", all);
  add_latency<&bench_summary::itl>("tbt", all);
  add_latency<&bench_summary::e2el>("e2el", all);
  add_latency<&bench_summary::ttft_slowdown>("ttft_slowdown", all);
  add_latency<&bench_summary::tpot_slowdown>("tpot_slowdown", all);
  add_latency<&bench_summary::e2el_slowdown>("e2el_slowdown", all);
  return all;
}

const std::map<std::string, reader>& latencies() {
  static const auto all = make_latencies();
  return all;
}

const std::map<std::string, reader>& others() {
  static const std::map<std::string, reader> all{
      {"request_throughput", [](const bench_summary& x) { return x.request_throughput; }},
      {"output_throughput", [](const bench_summary& x) { return x.output_throughput; }},
      {"total_throughput", [](const bench_summary& x) { return x.total_throughput; }},
      {"goodput", [](const bench_summary& x) { return x.goodput; }},
      {"failed", [](const bench_summary& x) { return static_cast<double>(x.failed); }}};
  return all;
}

/// Latencies have a unit, slowdowns have none.
bool is_time_figure(const std::string& figure) {
  return latencies().contains(figure) && figure.find("_slowdown_") == std::string::npos;
}

[[noreturn]] void refuse(const std::string& text, const std::string& why, const std::string& hint) {
  throw command_error{exit_usage, "--fail-if: '" + text + "' " + why, hint};
}

void check_figure(const bench_limit& x) {
  if (latencies().contains(x.figure) || others().contains(x.figure)) return;
  std::vector<std::string> known;
  for (const auto& [name, read] : latencies()) known.push_back(name);
  for (const auto& [name, read] : others()) known.push_back(name);
  const auto near = config::nearest(x.figure, known);
  refuse(x.text, "measures nothing that is known",
         near ? "did you mean " + *near + "?"
              : "ttft, tpot, itl or e2el (or ttft_slowdown and so on) with _mean, _p50, _p90, "
                "_p95, _p99, _max or _min; or "
                "request_throughput, output_throughput, total_throughput, goodput, failed");
}

} // namespace

bench_limit read_limit(const std::string& text) {
  const std::string form = "write FIGURE>LIMIT or FIGURE<LIMIT in quotes, such as 'ttft_p99>500ms' "
                           "or 'output_throughput<1000'";
  bench_limit x;
  x.text = text;
  const auto at = text.find_first_of("<>");
  if (at == std::string::npos) refuse(text, "has neither > nor <", form);
  x.figure = text.substr(0, at);
  x.above = text[at] == '>';
  check_figure(x);
  const char *from = text.data() + at + 1, *last = text.data() + text.size();
  const auto [end, bad] = std::from_chars(from, last, x.limit);
  if (bad != std::errc{} || !(x.limit >= 0) || !std::isfinite(x.limit))
    refuse(text, "has no limit that is a number of at least 0", form);
  const std::string unit{end, last};
  const std::map<std::string, double> units{{"", 1}, {"ms", 1}, {"s", 1e3}, {"us", 1e-3}};
  const bool is_time = is_time_figure(x.figure);
  if (!unit.empty() && !is_time) refuse(text, "has a unit, which its figure has not", form);
  const auto known = units.find(unit);
  if (known == units.end()) refuse(text, "has a unit other than ms, s and us", form);
  x.limit *= known->second;
  return x;
}

std::vector<std::string> broken_limits(const std::vector<bench_limit>& limits,
                                       const bench_summary& x) {
  std::vector<std::string> broken;
  for (const auto& limit : limits) {
    const auto found = latencies().find(limit.figure);
    const bool is_time = is_time_figure(limit.figure);
    const double value =
        (found != latencies().end() ? found : others().find(limit.figure))->second(x);
    if (!std::isnan(value) && !(limit.above ? value > limit.limit : value < limit.limit)) continue;
    char number[48] = "no value";
    if (!std::isnan(value))
      std::snprintf(number, sizeof number, "%.6g%s", value, is_time ? " ms" : "");
    broken.push_back(limit.figure + " is " + number + ": --fail-if " + limit.text);
  }
  return broken;
}

} // namespace lamella::cli
