#include "base/json_writer.hpp"
#include "cli/commands.hpp"
#include "cli/plan/simulate.hpp"
#include "scheduler/planner/report.hpp"

#include <fstream>

namespace lamella::cli {

namespace {

/// Milliseconds; null where there is no sample.
void latency(json_writer& out, const char* name, const scheduler::distribution& x) {
  out.key(name).begin_object();
  out.member("mean", x.mean() * 1e3).member("p50", x.quantile(0.5) * 1e3);
  out.member("p90", x.quantile(0.9) * 1e3).member("p99", x.quantile(0.99) * 1e3);
  out.end_object();
}

} // namespace

void save_file(const std::string& path, const char* flag, const std::string& text) {
  std::ofstream out{path, std::ios::binary | std::ios::trunc};
  out << text;
  out.close();
  if (!out)
    throw command_error{exit_failure, std::string{flag} + ": cannot write " + path,
                        "check the folder, its permissions and the free space"};
}

std::function<void(const scheduler::iteration_span&)> iteration_files::sink() {
  if (options_.csv.empty() && options_.timeline.empty()) return {};
  return [this](const scheduler::iteration_span& x) { add(x); };
}

void iteration_files::add(const scheduler::iteration_span& x) {
  if (!options_.csv.empty())
    csv_ += std::to_string(x.start_s) + "," + std::to_string(x.duration_s) + ","
            + std::to_string(x.batch) + "," + std::to_string(x.rows) + ","
            + std::to_string(x.context_tokens) + "\n";
  if (options_.timeline.empty()) return;
  json_writer event;
  event.begin_object().member("name", "iteration").member("ph", "X").member("pid", 1);
  event.member("tid", x.batch).member("ts", x.start_s * 1e6);
  event.member("dur", x.duration_s * 1e6).key("args").begin_object();
  event.member("requests", x.rows).member("context_tokens", x.context_tokens);
  event.end_object().end_object();
  events_ += (events_.empty() ? "" : ",") + event.take();
}

void iteration_files::save() {
  if (!options_.csv.empty()) save_file(options_.csv, "--csv", csv_);
  if (!options_.timeline.empty())
    save_file(options_.timeline, "--timeline", "{\"traceEvents\":[" + events_ + "]}");
}

std::string simulation_json(const shown_design& design, const scheduler::simulation_result& r,
                            const simulate_options& o, const scheduler::constants& c) {
  json_writer out;
  out.begin_object();
  out.member("version", 1).member("design", design.text);
  out.member("model", o.model).member("trace", o.trace).member("load", o.load);
  out.member("tokens_per_s", r.tokens_per_s).member("mean_batch", r.mean_batch);
  latency(out, "tbt_ms", r.tbt);
  latency(out, "ttft_ms", r.ttft);
  latency(out, "e2e_ms", r.e2e);
  out.member("usd_per_hour", design.usd_per_hour);
  out.member("usd_per_mtok", r.usd_per_mtok(design.usd_per_hour));
  out.member("watts", design.watts);
  out.member("requests", r.requests).member("tokens", r.tokens).member("never_fit", r.never_fit);
  out.member("preemptions", r.preemptions);
  if (r.iterations > 0) out.member("iterations", r.iterations); // a cluster does not count them
  out.member("recomputed_tokens", r.recomputed_tokens);
  if (!o.failures.empty()) out.member("failures", r.failures);
  if (!o.autoscale.empty()) {
    out.member("device_hours", r.device_hours);
    out.member("device_hours_saved", r.most_device_hours - r.device_hours);
    out.key("steps").begin_array();
    for (const auto& x : r.steps) {
      out.begin_object().member("at_seconds", x.at_s).member("pool", flag_word(x.step.pool));
      out.member("from", x.step.from).member("to", x.step.to).member("reason", x.step.reason);
      out.end_object();
    }
    out.end_array();
  }
  out.member("seconds", r.seconds).member("measured_seconds", r.measured_seconds);
  if (r.model_busy > 0) { // only where it is known
    out.member("model_busy", r.model_busy).member("attention_busy", r.attention_busy);
    out.member("wire_gb_per_s", r.wire_bytes_per_s / 1e9);
  }
  out.key("little").begin_object();
  out.member("running", r.running_over_time).member("rate_times_stay", r.rate_times_stay);
  out.end_object();
  for (const auto& [name, value] : design.measured) out.member(name, value);
  for (const auto& [name, value] : design.numbers) out.member(name, value);
  out.key("constants").begin_object();
  if (design.measured.empty()) // else nothing was computed from them
    for (const auto& row : scheduler::constant_rows) out.member(row.name, c.*row.field);
  out.end_object().end_object();
  return out.take() + "\n";
}

std::string simulation_table(const shown_design& design, const scheduler::simulation_result& r,
                             const simulate_options& o) {
  using scheduler::fixed;
  const auto times = [](const scheduler::distribution& x) -> std::string {
    if (x.count() == 0) return "none: no request has a second token";
    return fixed(x.mean() * 1e3, 1) + " ms mean, " + fixed(x.quantile(0.5) * 1e3, 1) + " p50, "
           + fixed(x.quantile(0.9) * 1e3, 1) + " p90, " + fixed(x.quantile(0.99) * 1e3, 1) + " p99";
  };
  auto text = "design      " + design.text + "\n";
  text += "work        " + o.model + ", " + o.trace + ", " + o.load + ": "
          + std::to_string(r.requests) + " requests, " + std::to_string(r.tokens) + " tokens\n";
  text += "throughput  " + fixed(r.tokens_per_s, 1) + " tokens/s, mean batch "
          + fixed(r.mean_batch, 1) + "\n";
  text += "TBT         " + times(r.tbt) + "\n";
  text += "TTFT        " + times(r.ttft) + " (" + design.ttft_note + ")\n";
  text += "E2E         " + times(r.e2e) + "\n";
  if (r.attention_busy > 0)
    text += "busy        model " + fixed(100 * r.model_busy, 0) + " %, attention "
            + fixed(100 * r.attention_busy, 0) + " %, network " + fixed(r.wire_bytes_per_s / 1e9, 1)
            + " GB/s\n";
  else if (r.model_busy > 0)
    text += "busy        devices " + fixed(100 * r.model_busy, 0) + " %\n";
  if (!design.balance.empty()) text += "balance     " + design.balance + "\n";
  if (design.usd_per_hour > 0 || design.watts > 0) { // a measured service has neither
    text += "cost        ";
    text += design.usd_per_hour > 0
                ? "$" + fixed(design.usd_per_hour, 2) + "/h, $"
                      + fixed(r.usd_per_mtok(design.usd_per_hour), 3) + " per million tokens, "
                : "no price in the table, ";
    text += design.watts > 0 ? fixed(design.watts, 0) + " W\n" : "no power in the table\n";
  }
  text += design.more;
  if (r.preemptions > 0) text += "preempted   " + std::to_string(r.preemptions) + " times\n";
  if (!o.failures.empty()) {
    text += "failures    " + std::to_string(r.failures) + ", " + std::to_string(r.recomputed_tokens)
            + " tokens recomputed";
    if (r.failures < o.failures.size())
      text += "; of " + std::to_string(o.failures.size())
              + ", the others came after the end, or on a device already down";
    text += "\n";
  }
  const auto scaled = r.scalings - r.steps.size(); // the others were the autoscaler's
  if (scaled < o.scalings.size())
    text += "not scaled  " + std::to_string(o.scalings.size() - scaled)
            + " times: after the end of the run\n";
  if (r.never_fit > 0)
    text += "left out    " + std::to_string(r.never_fit) + " requests longer than the KV cache\n";
  return text;
}

} // namespace lamella::cli
