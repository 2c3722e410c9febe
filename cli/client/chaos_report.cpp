#include "base/json_writer.hpp"
#include "cli/client/chaos.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string_view>

namespace lamella::cli {

namespace {

/// Nearest rank; nothing of nothing.
std::optional<double> quantile(const std::vector<double>& sorted, double q) {
  if (sorted.empty()) return std::nullopt;
  return sorted[static_cast<size_t>(std::lround(q * static_cast<double>(sorted.size() - 1)))];
}

/// "12", or "-" where there is nothing.
std::string whole(const std::optional<double>& x) { return x ? fmt::format("{:.0f}", *x) : "-"; }

void write(json_writer& out, std::string_view name, const std::optional<double>& x) {
  if (x)
    out.member(name, *x);
  else
    out.key(name).null();
}

std::vector<double> sorted(std::vector<double> x) {
  std::sort(x.begin(), x.end());
  return x;
}

/// Longest of the pauses.
std::optional<double> last_back_ms(const chaos_injury& x) {
  if (x.pauses_ms.empty()) return std::nullopt;
  return *std::max_element(x.pauses_ms.begin(), x.pauses_ms.end());
}

/// What was computed again after an injury, and how long the last stream waited for that.
std::string rebuild_line(const chaos_injury& x, double rate) {
  const auto limit = rebuild_limit_ms(x.rebuilt_tokens, rate);
  const auto last = last_back_ms(x);
  return fmt::format("{:10} KV of {} tokens recomputed; prefill alone {:.0f} tokens/s: 1 s + "
                     "1.3 x {:.2f} s = {:.2f} s, last back after {} of that\n",
                     "", x.rebuilt_tokens, rate, static_cast<double>(x.rebuilt_tokens) / rate,
                     limit * 1e-3, last ? fmt::format("{:.2f}", *last / limit) : "-");
}

void write_rebuilds(json_writer& out, const chaos_report& x) {
  out.key("rebuild").begin_object().member("prefill_tokens_per_s", x.prefill_rate);
  out.key("injuries").begin_array();
  for (const auto& i : x.injuries)
    if (i.rebuilt_tokens > 0) {
      out.begin_object().member("tokens", i.rebuilt_tokens);
      write(out, "last_back_ms", last_back_ms(i));
      out.member("limit_ms", rebuild_limit_ms(i.rebuilt_tokens, x.prefill_rate)).end_object();
    }
  out.end_array().end_object();
}

} // namespace

double rebuild_limit_ms(uint64_t tokens, double tokens_per_s) {
  return 1000 + 1.3 * 1000 * static_cast<double>(tokens) / tokens_per_s;
}

std::string chaos_page(const chaos_report& x, const chaos_options& options) {
  std::string page;
  std::vector<double> all;
  for (const auto& i : x.injuries) {
    const auto pauses = sorted(i.pauses_ms);
    all.insert(all.end(), pauses.begin(), pauses.end());
    page += fmt::format(
        "{:8.2f} s  {:<9} {:<13} {:>3} streams, pause ms: first back {}, median {}, "
        "last back {}\n",
        static_cast<double>(i.at.count()) * 1e-9, options.action, i.seat, i.streams,
        whole(quantile(pauses, 0)), whole(quantile(pauses, 0.5)), whole(quantile(pauses, 1)));
    if (i.rebuilt_tokens > 0 && x.prefill_rate > 0) page += rebuild_line(i, x.prefill_rate);
  }
  all = sorted(std::move(all));
  page += fmt::format("\nfaults {}, answers {} correct, {} wrong, {} lost, {} with duplicates, "
                      "{} refused and retried\n",
                      x.injuries.size(), x.answers, x.wrong, x.lost, x.duplicates, x.refused);
  page += fmt::format("longest silence of a stream: {:.0f} ms without faults; with, p50 {}, "
                      "p99 {}, max {}\n",
                      x.calm_gap_ms, whole(quantile(all, 0.5)), whole(quantile(all, 0.99)),
                      whole(quantile(all, 1)));
  for (const auto& [method, count] : x.recoveries)
    if (count > 0) page += fmt::format("requests recovered by {}: {}\n", method, count);
  for (const auto& error : x.errors) page += "lost: " + error + "\n";
  if (x.injuries.empty()) page += "no fault was injected\n";
  json_writer out;
  out.begin_object()
      .member("version", 1)
      .member("injected", x.injuries.size())
      .member("lost", x.lost)
      .member("wrong", x.wrong)
      .member("duplicates", x.duplicates);
  out.key("pause_ms").begin_object();
  write(out, "p50", quantile(all, 0.5));
  write(out, "p99", quantile(all, 0.99));
  write(out, "max", quantile(all, 1));
  out.end_object();
  out.key("recoveries").begin_object();
  for (const auto& [method, count] : x.recoveries) out.member(method, count);
  out.end_object();
  if (x.prefill_rate > 0) write_rebuilds(out, x);
  out.member("passed", x.passed());
  return page + out.end_object().take() + "\n";
}

} // namespace lamella::cli
