#include "cli/chaos.hpp"
#include "model/json_writer.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace lamella::cli {

namespace {

/// Nearest rank; 0 of nothing.
double quantile(const std::vector<double>& sorted, double q) {
  if (sorted.empty()) return 0;
  return sorted[static_cast<size_t>(q * static_cast<double>(sorted.size() - 1) + 0.5)];
}

std::vector<double> sorted(std::vector<double> x) {
  std::sort(x.begin(), x.end());
  return x;
}

} // namespace

std::string chaos_page(const chaos_report& x, const chaos_options& options) {
  std::string page;
  std::vector<double> all;
  for (const auto& i : x.injuries) {
    const auto pauses = sorted(i.pauses_ms);
    all.insert(all.end(), pauses.begin(), pauses.end());
    page +=
        fmt::format("{:8.2f} s  {:<9} {:<13} {:>3} streams, pause ms: first back {:.0f}, median "
                    "{:.0f}, last back {:.0f}\n",
                    static_cast<double>(i.at.count()) * 1e-9, options.action, i.seat, i.streams,
                    quantile(pauses, 0), quantile(pauses, 0.5), quantile(pauses, 1));
  }
  all = sorted(std::move(all));
  page += fmt::format("\ninjuries {}, answers {} right, {} wrong, {} lost, {} with duplicates, "
                      "{} refused and asked again\n",
                      x.injuries.size(), x.answers, x.wrong, x.lost, x.duplicates, x.refused);
  page += fmt::format("longest silence of a stream: {:.0f} ms without injuries; with, p50 {:.0f}, "
                      "p99 {:.0f}, max {:.0f}\n",
                      x.calm_gap_ms, quantile(all, 0.5), quantile(all, 0.99), quantile(all, 1));
  for (const auto& [method, count] : x.recoveries)
    page += fmt::format("requests recovered by {}: {}\n", method, count);
  for (const auto& error : x.errors) page += "lost: " + error + "\n";
  if (x.injuries.empty()) page += "nobody was injured\n";
  model::json_writer out;
  out.begin_object()
      .member("version", 1)
      .member("injected", x.injuries.size())
      .member("lost", x.lost)
      .member("wrong", x.wrong)
      .member("duplicates", x.duplicates);
  out.key("pause_ms")
      .begin_object()
      .member("p50", quantile(all, 0.5))
      .member("p99", quantile(all, 0.99))
      .member("max", quantile(all, 1))
      .end_object();
  out.key("recoveries").begin_object();
  for (const auto& [method, count] : x.recoveries) out.member(method, count);
  out.end_object().member("passed", x.passed());
  return page + out.end_object().take() + "\n";
}

} // namespace lamella::cli
