// Results of a serving benchmark as a report of GuideLLM.
#include "base/json_writer.hpp"
#include "cli/bench/load/exports.hpp"
#include "cli/bench/load/figures.hpp"

#include <algorithm>
#include <cmath>

namespace lamella::cli {

namespace {

double all_tokens(const bench_record& r) { return prompt_tokens(r) + output_tokens(r); }
double seconds(bench_record::time x) { return static_cast<double>(x.count()) * 1e-9; }

/// Sorted: what successful requests add up to in each window of the run, per second. A request
/// counts in the window of its end.
std::vector<double> rates_of(const bench_run& run, const record_figure& value) {
  const double length = run.result.duration_s;
  if (!(length > 0)) return {};
  const auto count = static_cast<size_t>(std::max(1.0, std::floor(length)));
  std::vector<double> all(count);
  for (const auto& r : run.result.records)
    if (r.error.empty()) {
      const auto share = std::clamp(seconds(r.end) / length, 0.0, 1.0);
      const auto window = static_cast<size_t>(share * static_cast<double>(count));
      all[std::min(window, count - 1)] += value(r) * static_cast<double>(count) / length;
    }
  std::ranges::sort(all);
  return all;
}

/// Sorted: successful requests in flight.
std::vector<double> in_flight(const bench_run& run) {
  constexpr int times = 1000;
  std::vector<double> all;
  for (int i = 0; i < times; ++i) {
    const double at = run.result.duration_s * (i + 0.5) / times;
    all.push_back(static_cast<double>(std::ranges::count_if(run.result.records, [&](const auto& r) {
      return r.error.empty() && seconds(r.sent) <= at && at < seconds(r.end);
    })));
  }
  std::ranges::sort(all);
  return all;
}

/// The value that comes most often; of sorted ones the first.
double mode_of(const std::vector<double>& sorted) {
  double best = 0;
  size_t most = 0;
  for (auto at = sorted.begin(); at != sorted.end();) {
    const auto next = std::upper_bound(at, sorted.end(), *at);
    if (const auto count = static_cast<size_t>(next - at); count > most) most = count, best = *at;
    at = next;
  }
  return best;
}

/// All zero where no request has the figure.
void write_distribution(json_writer& out, const std::vector<double>& sorted) {
  const auto x = summarize(sorted.empty() ? std::vector<double>{0} : sorted);
  double sum = 0;
  for (const double v : sorted) sum += v;
  out.begin_object().member("mean", x.mean).member("median", x.median);
  out.member("mode", mode_of(sorted)).member("variance", x.std * x.std).member("std_dev", x.std);
  out.member("min", x.min).member("max", x.max).member("count", sorted.size());
  out.member("total_sum", sum).key("percentiles").begin_object();
  constexpr std::pair<const char*, double> points[] = {
      {"p001", .001}, {"p01", .01}, {"p05", .05}, {"p10", .1},  {"p25", .25},  {"p50", .5},
      {"p75", .75},   {"p90", .9},  {"p95", .95}, {"p99", .99}, {"p999", .999}};
  for (const auto& [key, q] : points) out.member(key, sorted.empty() ? 0 : percentile(sorted, q));
  out.end_object().end_object();
}

/// Of successful requests; those that failed have no figures.
void write_metric(json_writer& out, const char* name, const std::vector<double>& sorted) {
  out.key(name).begin_object();
  for (const char* of : {"successful", "total"}) {
    out.key(of);
    write_distribution(out, sorted);
  }
  for (const char* of : {"incomplete", "errored"}) {
    out.key(of);
    write_distribution(out, {});
  }
  out.end_object();
}

void write_counts(json_writer& out, const char* name, const bench_run& run) {
  out.key(name).begin_object().member("successful", run.summary.completed);
  out.member("errored", run.summary.failed).member("incomplete", 0);
  out.member("total", run.result.records.size()).end_object();
}

/// Tokens of texts; there are no words, characters, pictures, sounds and calls.
void write_kinds(json_writer& out, const bench_run& run) {
  out.key("text").begin_object().key("tokens").begin_object();
  const std::pair<std::string, record_figure> kinds[] = {
      {"input", prompt_tokens}, {"output", output_tokens}, {"total", all_tokens}};
  for (const auto& [name, value] : kinds) {
    write_metric(out, name.c_str(), values_of(run.result, value));
    write_metric(out, (name + "_per_second").c_str(), rates_of(run, value));
    out.null_member(name + "_concurrency");
  }
  out.end_object().null_member("words").null_member("characters").end_object();
  const std::pair<const char*, std::vector<const char*>> others[] = {
      {"image", {"tokens", "images", "pixels", "bytes"}},
      {"video", {"tokens", "frames", "seconds", "bytes"}},
      {"audio", {"tokens", "samples", "seconds", "bytes"}},
      {"tool_call", {"tokens", "mixed_tokens", "count"}}};
  for (const auto& [kind, members] : others) {
    out.key(kind).begin_object();
    for (const auto* name : members) out.null_member(name);
    out.end_object();
  }
}

void write_metrics(json_writer& out, const bench_run& run) {
  const auto rate = [&](const char* name, const record_figure& value) {
    write_metric(out, name, rates_of(run, value));
  };
  const auto each = [&](const char* name, const record_figure& value) {
    write_metric(out, name, values_of(run.result, value));
  };
  const auto pieces = [](const bench_record& r) { return static_cast<double>(r.pieces); };
  out.key("metrics").begin_object();
  write_counts(out, "request_totals", run);
  rate("requests_per_second", [](const bench_record&) { return 1.0; });
  write_metric(out, "request_concurrency", in_flight(run));
  each("request_latency", [](const bench_record& r) { return e2el_ms(r) / 1e3; });
  each("request_streaming_iterations_count", pieces);
  each("prompt_token_count", prompt_tokens);
  each("output_token_count", output_tokens);
  each("total_token_count", all_tokens);
  each("time_to_first_token_ms", ttft_ms);
  each("time_to_first_output_token_ms", ttft_ms);
  each("time_per_output_token_ms",
       [](const bench_record& r) { return e2el_ms(r) / std::max(output_tokens(r), 1.0); });
  each("inter_token_latency_ms", tpot_ms);
  write_metric(out, "time_to_last_round_trip_ms", {}); // of web sockets
  write_metric(out, "avg_round_trip_time_ms", {});
  rate("prompt_tokens_per_second", prompt_tokens);
  rate("output_tokens_per_second", output_tokens);
  rate("tokens_per_second", all_tokens);
  each("output_tokens_per_iteration", [&](const bench_record& r) {
    return r.pieces > 0 ? output_tokens(r) / pieces(r) : no_number;
  });
  each("iter_tokens_per_iteration", [&](const bench_record& r) {
    return r.pieces > 1 ? (output_tokens(r) - 1) / (pieces(r) - 1) : no_number;
  });
  write_kinds(out, run);
  out.end_object();
}

/// How requests came.
void write_strategy(json_writer& out, const bench_serve_options& options) {
  out.key("strategy").begin_object();
  if (options.trace_arrivals())
    out.member("type_", "trace").member("time_scale", 1 / options.trace_speed);
  else if (options.rate)
    out.member("type_", "poisson").member("rate", *options.rate);
  else
    out.member("type_", "concurrent").member("streams", options.concurrency);
  out.end_object();
}

void write_config(json_writer& out, const bench_run& run, size_t index) {
  const auto id = "lamella-" + std::to_string(index);
  out.key("config").begin_object().member("id_", id).member("run_id", "lamella");
  out.member("run_index", index);
  write_strategy(out, run.options);
  for (const char* name : {"constraints", "profile"}) out.key(name).begin_object().end_object();
  out.key("requests").begin_object().member("data", run.options.command_line).end_object();
  out.key("backend").begin_object().member("model", run.options.model).end_object();
  out.key("environment").begin_object().end_object().end_object();
}

void write_times(json_writer& out, const bench_run& run) {
  const double begin = run.result.began_unix_s, end = begin + run.result.duration_s;
  out.key("scheduler_state").begin_object().member("start_time", begin).member("end_time", end);
  out.member("created_requests", run.result.records.size());
  out.member("processed_requests", run.result.records.size());
  out.member("successful_requests", run.summary.completed);
  out.member("errored_requests", run.summary.failed).end_object();
  out.key("scheduler_metrics").begin_object();
  for (const char* name : {"start_time", "request_start_time", "measure_start_time"})
    out.member(name, begin);
  for (const char* name : {"measure_end_time", "request_end_time", "end_time"})
    out.member(name, end);
  write_counts(out, "requests_made", run);
  const auto late =
      values_of(run.result, [](const bench_record& r) { return seconds(r.sent - r.intended); });
  const auto took =
      values_of(run.result, [](const bench_record& r) { return seconds(r.end - r.sent); });
  const auto mean = [](const std::vector<double>& x) { return x.empty() ? 0 : summarize(x).mean; };
  for (const char* name : {"queued_time_avg", "resolve_start_delay_avg", "resolve_end_delay_avg",
                           "request_start_delay_avg", "finalized_delay_avg", "processed_delay_avg"})
    out.member(name, 0);
  for (const char* name : {"resolve_targeted_start_delay_avg", "request_targeted_start_delay_avg"})
    out.member(name, mean(late));
  for (const char* name : {"request_time_avg", "resolve_time_avg"}) out.member(name, mean(took));
  out.end_object();
}

void write_request(json_writer& out, const bench_run& run, size_t index) {
  const auto& r = run.result.records[index];
  const auto id = std::to_string(index);
  const auto at = [&](bench_record::time x) { return run.result.began_unix_s + seconds(x); };
  out.begin_object().member("request_id", id).key("info").begin_object().member("request_id", id);
  out.member("status", r.error.empty() ? "completed" : "errored");
  if (!r.error.empty()) out.member("error", r.error);
  out.key("timings").begin_object().member("targeted_start", at(r.intended));
  for (const char* name : {"resolve_start", "request_start"}) out.member(name, at(r.sent));
  const double first = r.pieces > 0 ? at(r.first) : no_number;
  const double last = r.pieces > 0 ? at(r.last) : no_number;
  for (const char* name :
       {"first_request_iteration", "first_token_iteration", "first_output_token_iteration"})
    out.member(name, first);
  for (const char* name : {"last_token_iteration", "last_request_iteration"})
    out.member(name, last);
  for (const char* name : {"request_iterations", "token_iterations"}) out.member(name, r.pieces);
  for (const char* name : {"request_end", "resolve_end"}) out.member(name, at(r.end));
  out.end_object().end_object();
  out.key("input_metrics").begin_object().member("text_tokens", r.prompt_tokens);
  out.member("cached_tokens", r.cached_tokens).end_object();
  out.key("output_metrics").begin_object().member("text_tokens", output_tokens_of(r));
  out.end_object().end_object();
}

void write_requests(json_writer& out, const bench_run& run) {
  out.key("requests").begin_object();
  for (const bool well : {true, false}) {
    out.key(well ? "successful" : "errored").begin_array();
    for (size_t i = 0; i < run.result.records.size(); ++i)
      if (run.result.records[i].error.empty() == well) write_request(out, run, i);
    out.end_array();
  }
  out.key("incomplete").begin_array().end_array().end_object();
}

/// What was asked for, as GuideLLM would be: its profile of all runs, and prompts of their mean
/// length.
void write_scenario(json_writer& out, const std::string& url, const std::vector<bench_run>& runs) {
  const auto& options = runs.front().options;
  out.key("config").begin_object().key("spec").begin_object();
  out.key("backend").begin_object().member("kind", "openai_http").member("target", url);
  out.member("model", options.model).end_object().key("profile").begin_object();
  if (options.trace_arrivals()) {
    out.member("kind", "replay").member("time_scale", 1 / options.trace_speed);
  } else if (options.rate) {
    out.member("kind", "poisson").key("rate").begin_array();
    for (const auto& run : runs) out.value(*run.options.rate);
    out.end_array();
  } else {
    out.member("kind", "concurrent").key("streams").begin_array();
    out.value(options.concurrency).end_array();
  }
  out.end_object().key("data").begin_array().begin_object().member("kind", "synthetic_text");
  const auto mean = [&](const record_figure& value) {
    const auto all = values_of(runs.front().result, value);
    return all.empty() ? 1 : std::max(1L, std::lround(summarize(all).mean));
  };
  out.member("prompt_tokens", mean(prompt_tokens)).member("output_tokens", mean(output_tokens));
  out.end_object().end_array().end_object().end_object();
}

} // namespace

std::string guidellm_json(const std::string& url, const std::vector<bench_run>& runs) {
  json_writer out;
  out.begin_object().key("metadata").begin_object().member("version", 2);
  out.member("guidellm_version", "").end_object();
  if (!runs.empty()) write_scenario(out, url, runs);
  out.key("benchmarks").begin_array();
  for (size_t i = 0; i < runs.size(); ++i) {
    out.begin_object().member("type_", "generative_benchmark");
    write_config(out, runs[i], i);
    write_times(out, runs[i]);
    write_metrics(out, runs[i]);
    write_requests(out, runs[i]);
    out.key("lamella").raw(bench_json(runs[i].summary, runs[i].result, runs[i].options, false));
    out.end_object();
  }
  return out.end_array().end_object().take();
}

} // namespace lamella::cli
