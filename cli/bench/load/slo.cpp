#include "cli/bench/load/slo.hpp"

#include "cli/bench/load/figures.hpp"
#include "cli/commands.hpp"
#include "scheduler/planner/papers/splitwise_design.hpp"

#include <algorithm>
#include <charconv>

namespace lamella::cli {

namespace {

[[noreturn]] void refuse(const std::string& word) {
  throw command_error{
      exit_usage, "--goodput: '" + word + "' is not a limit",
      "write ttft:MS, tpot:MS (or tbt:MS) or e2el:MS, or slowdowns such as ttft:2x: "
      "--goodput ttft:500 tpot:1.25x"};
}

/// A latency of requests that were alone, by length.
struct point {
  double length, value;
};

double length_of(const bench_record& r) {
  return static_cast<double>(r.prompt_tokens) + static_cast<double>(output_tokens_of(r)) / 2;
}

/// Points of one length become their least: the others were not alone after all.
std::vector<point> merged(std::vector<point> all) {
  std::sort(all.begin(), all.end(), [](const point& a, const point& b) {
    return a.length != b.length ? a.length < b.length : a.value < b.value;
  });
  const auto end = std::unique(all.begin(), all.end(),
                               [](const point& a, const point& b) { return a.length == b.length; });
  all.erase(end, all.end());
  return all;
}

double value_at(const std::vector<point>& sorted, double length) {
  if (sorted.empty()) return no_number;
  if (length <= sorted.front().length) return sorted.front().value;
  for (size_t i = 1; i < sorted.size(); ++i) {
    const auto &a = sorted[i - 1], &b = sorted[i];
    if (length <= b.length)
      return a.value + (b.value - a.value) * (length - a.length) / (b.length - a.length);
  }
  return sorted.back().value;
}

} // namespace

bench_slos read_slos(const std::vector<std::string>& words) {
  bench_slos slos;
  for (const auto& word : words) {
    const auto colon = word.find(':');
    if (colon == std::string::npos) refuse(word);
    auto name = word.substr(0, colon);
    if (name == "tbt") name = "tpot";
    if (name == "e2e") name = "e2el";
    double limit = 0;
    const char *from = word.data() + colon + 1, *last = word.data() + word.size();
    const auto [end, bad] = std::from_chars(from, last, limit);
    const std::string unit{end, last};
    constexpr double most = 1e9;
    if ((name != "ttft" && name != "tpot" && name != "e2el") || bad != std::errc{} || !(limit > 0)
        || limit > most || (!unit.empty() && unit != "x" && unit != "ms"))
      refuse(word);
    (unit == "x" ? slos.slowdown : slos.ms)[name] = limit;
  }
  return slos;
}

slowdowns slowdowns_of(const bench_record& r, const std::vector<bench_record>& alone) {
  std::vector<point> ttfts, tpots;
  for (const auto& x : alone) {
    ttfts.push_back({static_cast<double>(x.prompt_tokens), ttft_ms(x)});
    if (output_tokens_of(x) > 1) tpots.push_back({length_of(x), tpot_ms(x)});
  }
  const double ttft = value_at(merged(std::move(ttfts)), static_cast<double>(r.prompt_tokens)),
               tpot = value_at(merged(std::move(tpots)), length_of(r));
  const auto later = output_tokens_of(r) < 2 ? 0 : static_cast<double>(output_tokens_of(r) - 1);
  const double whole = later > 0 ? ttft + later * tpot : ttft;
  return {ttft_ms(r) / ttft, tpot_ms(r) / tpot, e2el_ms(r) / whole};
}

bool keeps(const bench_record& r, const bench_slos& slos, const std::vector<bench_record>& alone) {
  for (const auto& [name, limit] : slos.ms) {
    const double value = name == "ttft" ? ttft_ms(r) : name == "tpot" ? tpot_ms(r) : e2el_ms(r);
    if (value > limit) return false;
  }
  if (slos.slowdown.empty()) return true;
  const auto x = slowdowns_of(r, alone);
  for (const auto& [name, limit] : slos.slowdown)
    if ((name == "ttft" ? x.ttft : name == "tpot" ? x.tpot : x.e2el) > limit) return false;
  return true;
}

bool keep_nine_slos(const bench_result& result) {
  scheduler::splitwise_result r;
  for (const auto& record : result.records) {
    if (!record.error.empty()) continue;
    const auto x = slowdowns_of(record, result.alone);
    r.ttft_slowdown.add(x.ttft);
    r.e2e_slowdown.add(x.e2el);
    if (output_tokens_of(record) > 1) r.tbt_slowdown.add(x.tpot);
  }
  return r.ttft_slowdown.count() > 0 && r.meets_slo();
}

} // namespace lamella::cli
