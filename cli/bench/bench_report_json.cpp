/// The benchmark's result as JSON, under the flat keys that plotting scripts expect.
#include "base/json_writer.hpp"
#include "cli/bench/bench_report.hpp"
#include "cli/bench/load/figures.hpp"

#include <ctime>

namespace lamella::cli {

namespace {

void write_latency(json_writer& out, const std::string& name, const latency_summary& x) {
  const auto key = [&](const std::string& what) { return what + "_" + name + "_ms"; };
  // Null where there is none.
  out.member(key("mean"), x.mean).member(key("median"), x.median).member(key("std"), x.std);
  out.member(key("min"), x.min).member(key("max"), x.max).member(key("p90"), x.p90);
  out.member(key("p95"), x.p95).member(key("p99"), x.p99);
}

/// What requests took that were alone, and how many times as long those of the load.
void write_slowdowns(json_writer& out, const bench_summary& x, const bench_result& result) {
  if (!x.nine_slos) return;
  out.key("slowdowns").begin_object();
  for (const auto& [name, s] :
       {std::pair{"ttft", &x.ttft_slowdown}, std::pair{"tpot", &x.tpot_slowdown},
        std::pair{"e2el", &x.e2el_slowdown}})
    out.key(name)
        .begin_object()
        .member("p50", s->median)
        .member("p90", s->p90)
        .member("p99", s->p99)
        .end_object();
  out.member("splitwise_slos_kept", *x.nine_slos).key("alone").begin_array();
  for (const auto& r : result.alone)
    out.begin_object()
        .member("input_tokens", r.prompt_tokens)
        .member("output_tokens", output_tokens_of(r))
        .member("ttft_ms", ttft_ms(r))
        .member("tpot_ms", tpot_ms(r))
        .end_object();
  out.end_array().end_object();
}

/// Of conversations: what later turns find in the server's cache, and how soon they are answered.
void write_turns(json_writer& out, const bench_summary& x, const bench_serve_options& options) {
  if (options.turns == 1) return;
  out.key("turns").begin_object().member("most", options.turns);
  out.member("mean_think_s", options.think_s).member("conversations", x.conversations);
  out.member("mean_ttft_first_ms", x.ttft_first.mean);
  out.member("mean_ttft_later_ms", x.ttft_later.mean);
  out.member("later_input_tokens", x.later_input_tokens);
  out.member("later_cached_tokens", x.later_cached_tokens).end_object();
}

std::string date() {
  const auto now = std::time(nullptr);
  tm utc{};
  gmtime_r(&now, &utc);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc);
  return text;
}

void write_records(json_writer& out, const bench_result& result) {
  const auto in_seconds = [](bench_record::time x) {
    return static_cast<double>(x.count()) * 1e-9;
  };
  const auto array = [&](const char* name, auto&& value) {
    out.key(name).begin_array();
    for (const auto& r : result.records) out.value(value(r));
    out.end_array();
  };
  using record = const bench_record&;
  array("start_times", [&](record r) { return in_seconds(r.intended); });
  array("send_delays", [&](record r) { return in_seconds(r.sent - r.intended); });
  array("ttfts", [&](record r) {
    return r.pieces > 0 ? in_seconds(r.first - r.intended) : latency_summary::nothing;
  });
  array("e2els", [&](record r) { return in_seconds(r.end - r.intended); });
  array("input_lens", [](record r) { return r.prompt_tokens; });
  array("output_lens", [](record r) { return output_tokens_of(r); });
  array("errors", [](record r) { return r.error; });
  array("cached_lens", [](record r) { return r.cached_tokens; });
  array("conversations", [](record r) { return r.conversation; });
  array("turns", [](record r) { return r.turn; });
  out.key("itls").begin_array();
  for (const auto& r : result.records) {
    out.begin_array();
    for (const float gap : r.gaps_ms) out.value(static_cast<double>(gap) / 1e3);
    out.end_array();
  }
  out.end_array();
}

} // namespace

std::string bench_json(const bench_summary& x, const bench_result& result,
                       const bench_serve_options& options, bool records) {
  json_writer out;
  out.begin_object().member("version", 1).member("date", date());
  out.member("endpoint_type", options.endpoint == bench_endpoint::chat ? "openai-chat" : "openai");
  out.member("model_id", options.model);
  out.member("num_prompts", result.records.size());
  if (options.rate)
    out.member("request_rate", *options.rate).null_member("max_concurrency");
  else if (options.trace_arrivals())
    out.member("request_rate", x.offered_rate).null_member("max_concurrency");
  else
    out.member("request_rate", "inf").member("max_concurrency", options.concurrency);
  out.member("duration", result.duration_s).member("completed", x.completed);
  out.member("failed", x.failed).member("total_input_tokens", x.input_tokens);
  out.member("total_cached_tokens", x.cached_tokens);
  out.member("total_output_tokens", x.output_tokens);
  out.member("request_throughput", x.request_throughput);
  if (options.goodput.empty())
    out.null_member("request_goodput");
  else
    out.member("request_goodput", x.goodput);
  out.member("output_throughput", x.output_throughput);
  out.member("total_token_throughput", x.total_throughput);
  write_latency(out, "ttft", x.ttft);
  write_latency(out, "tpot", x.tpot);
  write_latency(out, "itl", x.itl);
  write_latency(out, "e2el", x.e2el);
  out.key("errors_by_code").begin_object();
  for (const auto& [code, count] : x.errors) out.member(code, count);
  out.end_object();
  if (records) write_records(out, result);
  out.key("lamella").begin_object().member("version", LAMELLA_VERSION);
  out.member("command", options.command_line).member("seed", options.seed);
  // Null where a file says how long each is.
  const auto length = [&](const char* name, const length_distribution& of, bool drawn) {
    if (!drawn)
      out.null_member(name);
    else
      of.is_fixed() ? out.member(name, of.typical()) : out.member(name, of.text());
  };
  const bool own = options.trace.empty() && options.dataset.empty();
  length("input_tokens", options.input_len, own && options.prompt_file.empty());
  length("output_tokens", options.output_len, own || options.output_len_given);
  out.member("trace", options.trace).member("dataset", options.dataset);
  out.member("warm_up", options.warm_up).member("offered_rate", x.offered_rate);
  out.member("max_pause_ms", x.max_pause_ms).member("client_cpu_share", result.cpu_share);
  out.member("client_lag_p99_ms", result.lag_p99_ms).member("interrupted", result.interrupted);
  out.member("latency_from", "intended send time");
  out.key("goodput_limits_ms").begin_object();
  for (const auto& [name, limit] : options.goodput.ms) out.member(name, limit);
  out.end_object().key("goodput_slowdowns").begin_object();
  for (const auto& [name, limit] : options.goodput.slowdown) out.member(name, limit);
  out.end_object();
  write_turns(out, x, options);
  write_slowdowns(out, x, result);
  out.key("notes").begin_array();
  for (const auto& note : x.warnings) out.value(note);
  return out.end_array().end_object().end_object().take();
}

} // namespace lamella::cli
