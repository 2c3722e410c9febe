#include "cli/commands.hpp"
#include "cli/plan.hpp"
#include "model/json_writer.hpp"
#include "scheduler/report.hpp"

#include <algorithm>
#include <charconv>

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

std::string plan_table(const std::vector<scheduler::plan_row>& rows, uint32_t shown, bool limited) {
  scheduler::text_table t{"",
                          {"", "design", "copies", "tokens/s", "batch", "TBT ms p50", "p99", "$/h",
                           "$/Mtok", "W", "bound by", "limits"},
                          {}};
  for (uint32_t i = 0; i < std::min<size_t>(shown, rows.size()); ++i) {
    const auto& r = rows[i];
    t.rows.push_back({std::to_string(i + 1), scheduler::describe(r.design),
                      std::to_string(r.copies), fixed(r.tokens_per_s, 0), fixed(r.batch, 0),
                      fixed(r.tbt.quantile(0.5) * 1e3, 1), fixed(r.tbt.quantile(0.99) * 1e3, 1),
                      fixed(r.usd_per_hour(), 2), fixed(r.usd_per_mtok, 3), fixed(r.watts(), 0),
                      r.bound,
                      !r.ok()   ? r.misses
                      : limited ? "kept"
                                : "none"});
  }
  return scheduler::markdown_of(t);
}

std::string measured_text(const measured_plan& m, const scheduler::plan_question& q) {
  const auto& r = m.plan.result;
  const auto ms = [](const scheduler::distribution& x) {
    return fixed(x.quantile(0.5) * 1e3, 1) + " ms p50, " + fixed(x.quantile(0.99) * 1e3, 1)
           + " p99";
  };
  std::string text = "Beside these, prompts included: " + m.service + "\n  "
                     + fixed(m.plan.tokens_per_s, 0) + " tokens/s full, with "
                     + std::to_string(m.plan.seats) + " seats";
  if (q.rate > 0)
    text += "; " + std::to_string(m.plan.copies) + " cop" + (m.plan.copies == 1 ? "y" : "ies")
            + " for " + scheduler::brief(q.rate) + " requests/s";
  text += "\n  TBT " + ms(r.tbt) + "; TTFT " + ms(r.ttft) + "\n  limits: "
          + (!m.plan.ok()       ? m.plan.misses
             : q.limits.empty() ? "none"
                                : "kept")
          + "; " + fixed(100 * r.extrapolated, 0)
          + " % of decoding lies beyond what was measured\n";
  if (r.never_fit > 0)
    text += "  left out: " + std::to_string(r.never_fit) + " requests that it cannot hold\n";
  return text;
}

std::string plan_json(const std::vector<scheduler::plan_row>& rows, const std::string& verdict,
                      const std::vector<scheduler::sensitivity>& sensitive,
                      const std::optional<measured_plan>& measured, const plan_options& o) {
  model::json_writer out;
  out.begin_object().member("version", 1).member("model", o.model).member("trace", o.trace);
  out.member("verdict", verdict).key("rows").begin_array();
  for (const auto& r : rows) {
    out.begin_object().member("design", scheduler::describe(r.design));
    out.member("disaggregated", r.design.disaggregated()).member("copies", r.copies);
    out.member("tokens_per_s", r.tokens_per_s).member("mean_batch", r.batch);
    const auto nics = [](const scheduler::device_group& g) {
      return g.nics > 0 ? g.nics : g.count;
    };
    out.member("compute_nics", nics(r.design.compute) * r.design.replicas);
    out.member("memory_nics", nics(r.design.memory));
    out.member("seats_per_batch", r.seats).member("simulated", r.simulated);
    out.key("tbt_ms").begin_object().member("mean", r.tbt.mean() * 1e3);
    out.member("p50", r.tbt.quantile(0.5) * 1e3).member("p90", r.tbt.quantile(0.9) * 1e3);
    out.member("p99", r.tbt.quantile(0.99) * 1e3).end_object();
    out.member("usd_per_hour", r.usd_per_hour()).member("usd_per_mtok", r.usd_per_mtok);
    out.member("watts", r.watts()).member("joules_per_token", r.joules_per_token);
    out.member("bound", r.bound).member("ok", r.ok()).member("misses", r.misses).end_object();
  }
  out.end_array().key("sensitivity").begin_array();
  for (const auto& s : sensitive)
    out.begin_object().member("constant", s.constant).member("percent", s.percent).end_object();
  out.end_array();
  if (measured) {
    const auto& plan = measured->plan;
    const auto quantiles = [&](const char* name, const scheduler::distribution& x) {
      out.key(name).begin_object().member("mean", x.mean() * 1e3);
      out.member("p50", x.quantile(0.5) * 1e3).member("p90", x.quantile(0.9) * 1e3);
      out.member("p99", x.quantile(0.99) * 1e3).end_object();
    };
    out.key("measured").begin_object().member("service", measured->service);
    out.member("seats", plan.seats).member("copies", plan.copies);
    out.member("tokens_per_s", plan.tokens_per_s).member("mean_batch", plan.result.mean_batch);
    quantiles("tbt_ms", plan.result.tbt);
    quantiles("ttft_ms", plan.result.ttft);
    quantiles("e2e_ms", plan.result.e2e);
    out.member("ok", plan.ok()).member("misses", plan.misses);
    out.member("never_fit", plan.result.never_fit);
    out.member("extrapolated", plan.result.extrapolated).end_object();
  }
  out.end_object();
  return out.take() + "\n";
}

} // namespace lamella::cli
