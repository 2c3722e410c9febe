#include "base/json_writer.hpp"
#include "cli/commands.hpp"
#include "cli/plan/plan.hpp"
#include "scheduler/planner/report.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <utility>

namespace lamella::cli {

using scheduler::fixed;

scheduler::latency_limit limit_of(const std::string& word) {
  const command_error wrong{exit_usage, "--slo: '" + word + "' is not a limit",
                            "write METRIC:QUANTILE:MS, such as tbt:p99:60 or ttft:p50:500"};
  const auto first = word.find(':'), second = word.find(':', first + 1);
  if (first == std::string::npos || second == std::string::npos) throw wrong;
  const auto metric = word.substr(0, first), quantile = word.substr(first + 1, second - first - 1);
  const auto number = word.substr(second + 1);
  scheduler::latency_limit x;
  if (metric == "ttft")
    x.metric = scheduler::latency_metric::ttft;
  else if (metric == "e2e")
    x.metric = scheduler::latency_metric::e2e;
  else if (metric != "tbt")
    throw wrong;
  if (quantile == "p50")
    x.quantile = 0.5;
  else if (quantile == "p90")
    x.quantile = 0.9;
  else if (quantile != "p99")
    throw wrong;
  double ms = 0;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), ms);
  const std::string unit{end, number.data() + number.size()};
  if (error != std::errc{} || (unit != "" && unit != "ms") || !(ms > 0 && ms <= 1e9)) throw wrong;
  x.limit_s = ms / 1e3;
  return x;
}

std::string plan_table(const std::vector<scheduler::plan_row>& rows, uint32_t shown,
                       const scheduler::plan_question& q) {
  scheduler::text_table t{
      "", {"", "design", "copies", "tokens/s", "batch", "TBT ms p50", "p99"}, {}};
  if (q.rate > 0)
    for (const char* more : {"TTFT ms p50", "p99", "E2E s p50", "p99"})
      t.columns.emplace_back(more);
  for (const char* more : {"$/h", "$/Mtok", "W", "bound by", "limits"})
    t.columns.emplace_back(more);
  for (uint32_t i = 0; i < std::min<size_t>(shown, rows.size()); ++i) {
    const auto& r = rows[i];
    const auto times = [&](const scheduler::distribution& x, double unit, int digits) {
      return std::array{fixed(x.quantile(0.5) * unit, digits),
                        fixed(x.quantile(0.99) * unit, digits)};
    };
    std::vector<std::string> row{std::to_string(i + 1), scheduler::describe(r.design),
                                 std::to_string(r.copies), fixed(r.tokens_per_s, 0),
                                 fixed(r.batch, 0)};
    for (const auto& x : times(r.tbt, 1e3, 1)) row.push_back(x);
    if (q.rate > 0) {
      for (const auto& x : times(r.ttft, 1e3, 0)) row.push_back(x);
      for (const auto& x : times(r.e2e, 1, 1)) row.push_back(x);
    }
    const bool priced = r.design.priced();
    row.push_back(priced ? fixed(r.usd_per_hour(), 2) : "-");
    row.push_back(priced ? fixed(r.usd_per_mtok, 3) : "-");
    row.push_back(r.design.powered() ? fixed(r.watts(), 0) : "-");
    row.push_back(r.bound);
    row.push_back(!r.ok() ? r.misses : q.limited() ? "kept" : "none");
    t.rows.push_back(std::move(row));
  }
  return scheduler::markdown_of(t);
}

std::string sensitivity_text(const std::vector<scheduler::sensitivity>& all,
                             scheduler::plan_objective objective) {
  using scheduler::brief;
  const char* what = objective == scheduler::plan_objective::power        ? "power"
                     : objective == scheduler::plan_objective::throughput ? "time"
                                                                          : "price";
  std::string text =
      "\nThe " + std::string{what}
      + " per token of the best design changes when an unmeasured constant is a fifth "
        "larger, or at its maximum, by\n";
  if (all.empty()) return text + "  nothing\n";
  for (size_t i = 0; i < std::min<size_t>(4, all.size()); ++i) {
    const auto& x = all[i];
    const auto change = " (" + brief(x.from) + " to " + brief(x.to) + ")";
    text += x.refused.empty() ? "  " + std::string{x.percent > 0 ? "+" : ""} + fixed(x.percent, 1)
                                    + " %  " + x.constant + change + "\n"
                              : "  " + x.constant + change + ": infeasible: " + x.refused + "\n";
  }
  return text;
}

std::string measured_text(const measured_plan& m, const scheduler::plan_question& q) {
  const auto& r = m.plan.result;
  const auto ms = [](const scheduler::distribution& x) {
    return fixed(x.quantile(0.5) * 1e3, 1) + " ms p50, " + fixed(x.quantile(0.99) * 1e3, 1)
           + " p99";
  };
  std::string text = "For comparison, prefill included: " + m.service + "\n  "
                     + fixed(m.plan.tokens_per_s, 0) + " tokens/s full, with "
                     + std::to_string(m.plan.seats) + " seats";
  if (q.rate > 0)
    text += "; " + std::to_string(m.plan.copies) + " cop" + (m.plan.copies == 1 ? "y" : "ies")
            + " for " + scheduler::brief(q.rate) + " requests/s";
  text += "\n  TBT " + ms(r.tbt) + "; TTFT " + ms(r.ttft) + "\n  limits: "
          + (!m.plan.ok()       ? m.plan.misses
             : q.limits.empty() ? "none"
                                : "met")
          + "; " + fixed(100 * r.extrapolated, 0)
          + " % of decoding is extrapolated beyond the profile\n";
  if (r.never_fit > 0)
    text += "  left out: " + std::to_string(r.never_fit) + " requests longer than its KV cache\n";
  return text;
}

namespace {

void write_ms(json_writer& out, const char* name, const scheduler::distribution& x) {
  out.key(name).begin_object().member("mean", x.mean() * 1e3);
  out.member("p50", x.quantile(0.5) * 1e3).member("p90", x.quantile(0.9) * 1e3);
  out.member("p99", x.quantile(0.99) * 1e3).end_object();
}

void write(json_writer& out, const scheduler::plan_row& r) {
  out.begin_object().member("design", scheduler::describe(r.design));
  out.member("stages", r.design.stages);
  out.member("disaggregated", r.design.disaggregated()).member("copies", r.copies);
  out.member("tokens_per_s", r.tokens_per_s).member("mean_batch", r.batch);
  const auto nics = [](const scheduler::device_group& g) { return g.nics > 0 ? g.nics : g.count; };
  out.member("compute_nics", nics(r.design.compute) * r.design.groups());
  out.member("memory_nics", nics(r.design.memory));
  out.member("seats_per_batch", r.seats).member("simulated", r.simulated);
  write_ms(out, "tbt_ms", r.tbt);
  for (const auto& [name, x] : {std::pair{"ttft_ms", &r.ttft}, {"e2e_ms", &r.e2e}})
    if (x->count() > 0) write_ms(out, name, *x); // only at a rate
  if (r.design.priced())
    out.member("usd_per_hour", r.usd_per_hour()).member("usd_per_mtok", r.usd_per_mtok);
  if (r.design.powered())
    out.member("watts", r.watts()).member("joules_per_token", r.joules_per_token);
  out.member("bound", r.bound).member("ok", r.ok()).member("misses", r.misses);
  if (!r.ok() && std::isfinite(r.miss)) out.member("misses_by", r.miss);
  out.end_object();
}

void write(json_writer& out, const scheduler::sensitivity& s) {
  out.begin_object().member("constant", s.constant).member("from", s.from).member("to", s.to);
  if (s.refused.empty())
    out.member("percent", s.percent);
  else
    out.member("refused", s.refused);
  out.end_object();
}

void write(json_writer& out, const measured_plan& measured) {
  const auto& plan = measured.plan;
  out.key("measured").begin_object().member("service", measured.service);
  out.member("seats", plan.seats).member("copies", plan.copies);
  out.member("tokens_per_s", plan.tokens_per_s).member("mean_batch", plan.result.mean_batch);
  write_ms(out, "tbt_ms", plan.result.tbt);
  write_ms(out, "ttft_ms", plan.result.ttft);
  write_ms(out, "e2e_ms", plan.result.e2e);
  out.member("ok", plan.ok()).member("misses", plan.misses);
  out.member("never_fit", plan.result.never_fit);
  out.member("extrapolated", plan.result.extrapolated).end_object();
}

} // namespace

std::string plan_json(const std::vector<scheduler::plan_row>& rows, const std::string& verdict,
                      const std::vector<scheduler::sensitivity>& sensitive,
                      const std::optional<measured_plan>& measured, const plan_options& o) {
  json_writer out;
  out.begin_object().member("version", 1).member("model", o.model).member("trace", o.trace);
  out.member("verdict", verdict).key("rows").begin_array();
  for (const auto& r : rows) write(out, r);
  out.end_array().key("sensitivity").begin_array();
  for (const auto& s : sensitive) write(out, s);
  out.end_array();
  if (measured) write(out, *measured);
  out.end_object();
  return out.take() + "\n";
}

} // namespace lamella::cli
