/// All families of the metrics and their series, for net/metrics/metrics.cpp alone.
#pragma once

#include "net/api/api_route.hpp"
#include "net/metrics/failover_words.hpp"
#include "net/metrics/metrics.hpp"
#include "net/metrics/metrics_http.hpp"
#include "net/metrics/metrics_words.hpp"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>

#include <array>
#include <map>
#include <mutex>
#include <set>

namespace lamella::net {

using metric_words::batch_buckets;
using metric_words::buckets;
using metric_words::change_ends;
using metric_words::conditions;
using metric_words::damages;
using metric_words::duration_buckets;
using metric_words::ends;
using metric_words::faults;
using metric_words::fences;
using metric_words::first_token_buckets;
using metric_words::gap_buckets;
using metric_words::iteration_buckets;
using metric_words::mailboxes;
using metric_words::methods;
using metric_words::names_max;
using metric_words::outcomes;
using metric_words::pause_buckets;
using metric_words::phases;
using metric_words::rejections;
using metric_words::roles;
using metric_words::rtt_buckets;
using metric_words::slot_states;
using metric_words::span_losses;
using metric_words::stages;
using metric_words::step_token_buckets;
using metric_words::stop_buckets;
using metric_words::token_buckets;
using prometheus::Counter;
using prometheus::Family;
using prometheus::Gauge;
using prometheus::Histogram;
using prometheus::Labels;
using prometheus::Registry;

inline std::string text(std::string_view view) { return std::string(view); }

struct metrics::impl {
  explicit impl(settings s) : configured(std::move(s)) {}

  const settings configured;
  Registry registry;
  const Labels model{{"model_name", configured.model_name}, {"engine", "0"}};

  Labels with_model(std::string_view name, std::string_view value) const {
    Labels labels = model;
    labels.emplace(name, value);
    return labels;
  }
  Family<Counter>& counters(const char* name, const char* help) {
    return prometheus::BuildCounter().Name(name).Help(help).Register(registry);
  }
  Family<Gauge>& gauges(const char* name, const char* help) {
    return prometheus::BuildGauge().Name(name).Help(help).Register(registry);
  }
  Family<Histogram>& histograms(const char* name, const char* help) {
    return prometheus::BuildHistogram().Name(name).Help(help).Register(registry);
  }
  Counter& counter(const char* name, const char* help) { return counters(name, help).Add(model); }
  Gauge& gauge(const char* name, const char* help) { return gauges(name, help).Add(model); }
  Histogram& histogram(const char* name, const char* help, const buckets& bounds) {
    return histograms(name, help).Add(model, bounds);
  }

  // The compatible set.
  const buckets tokens = token_buckets(configured.context_tokens);
  Gauge& running = gauge("vllm:num_requests_running", "Sequences in a batch or in prefill.");
  Gauge& waiting =
      gauge("vllm:num_requests_waiting", "Prompts waiting for KV slots or for prefill to start.");
  Gauge& usage = gauge("vllm:kv_cache_usage_perc",
                       "Highest share of KV slots in use of any attention worker, 0 to 1.");
  Family<Gauge>& cache_config =
      gauges("vllm:cache_config_info", "Sizes of the KV cache as labels; always 1.");
  Counter& prompt_tokens = counter("vllm:prompt_tokens_total", "Prompt tokens processed.");
  Counter& generation_tokens = counter("vllm:generation_tokens_total", "Tokens generated.");
  Family<Counter>& success =
      counters("vllm:request_success_total", "Requests finished, by finish reason.");
  Counter& poisoned = counter("lamella_requests_poisoned_total",
                              "Poison requests failed because they crash workers.");
  Counter& preemptions = counter("vllm:num_preemptions_total",
                                 "Requests preempted: their KV was evicted to make room.");
  Counter& prefix_queries =
      counter("vllm:prefix_cache_queries_total", "Prompt tokens looked up in the prefix cache.");
  Counter& prefix_hits =
      counter("vllm:prefix_cache_hits_total", "Prompt tokens found in the prefix cache.");
  Histogram& first_token =
      histogram("vllm:time_to_first_token_seconds", "Arrival to first token.", first_token_buckets);
  Histogram& gap = histogram("vllm:inter_token_latency_seconds",
                             "Gap between two tokens of a choice.", gap_buckets);
  Histogram& per_token =
      histogram("vllm:request_time_per_output_token_seconds",
                "Mean gap between tokens of a choice, over all choices of a request.", gap_buckets);
  Histogram& e2e =
      histogram("vllm:e2e_request_latency_seconds", "Arrival to last token.", duration_buckets);
  Histogram& queue =
      histogram("vllm:request_queue_time_seconds", "Arrival to first scheduled.", duration_buckets);
  Histogram& inference = histogram("vllm:request_inference_time_seconds",
                                   "First scheduled to last token.", duration_buckets);
  Histogram& prefill = histogram("vllm:request_prefill_time_seconds",
                                 "First scheduled to first token.", duration_buckets);
  Histogram& decode =
      histogram("vllm:request_decode_time_seconds", "First to last token.", duration_buckets);
  Histogram& request_prompt =
      histogram("vllm:request_prompt_tokens", "Prompt tokens of a request.", tokens);
  Histogram& request_generation =
      histogram("vllm:request_generation_tokens", "Tokens generated for a request.", tokens);
  Histogram& request_max_tokens =
      histogram("vllm:request_params_max_tokens", "max_tokens of a request.", tokens);
  Histogram& request_n =
      histogram("vllm:request_params_n", "Choices of a request.", {1, 2, 5, 10, 20});
  Histogram& iteration_tokens =
      histogram("vllm:iteration_tokens_total", "Tokens of an iteration.", step_token_buckets);
  Family<Counter>& http = counters("http_requests_total", "HTTP requests by status class.");
  Family<Histogram>& http_seconds =
      histograms("http_request_duration_seconds", "HTTP request to end of answer.");

  // Our own.
  Family<Gauge>& build =
      gauges("lamella_build_info", "Version and build of this process as labels; always 1.");
  Family<Counter>& requests =
      counters("lamella_requests_total", "Requests by outcome and error code.");
  Family<Counter>& lost =
      counters("lamella_requests_lost_total", "Requests lost with a worker; must stay 0.");
  Family<Counter>& rejected =
      counters("lamella_admission_rejected_total", "Requests rejected by admission, by reason.");
  Family<Gauge>& expected_seconds =
      gauges("lamella_expected_seconds",
             "Time of iterations like the newest, by work and attention cell, as measured.");
  Family<Gauge>& time_correction =
      gauges("lamella_time_correction_ratio",
             "Measured over predicted times of the newest iterations, by work and cell.");
  Family<Gauge>& worker_up =
      gauges("lamella_worker_up", "1 while the worker has loaded and is ready to serve.");
  Family<Gauge>& worker_state =
      gauges("lamella_worker_state", "1 for the state the worker is in, 0 for the others.");
  Family<Gauge>& pool_members =
      gauges("lamella_pool_members", "Members of the pool, spares and parity not counted.");
  Family<Gauge>& pool_wish =
      gauges("lamella_pool_wish",
             "Members that the pool should have by the load; 0 where it is not autoscaled.");
  Family<Gauge>& pool_target =
      gauges("lamella_pool_target_members",
             "Members that the pool shall have; others than it has while a change is under way.");
  Family<Counter>& pool_changes =
      counters("lamella_pool_changes_total", "Changes of a pool's size, by how they ended.");
  Counter& kv_moved_slots =
      counters("lamella_kv_moved_slots_total", "KV slots copied to the shards of a next epoch.")
          .Add(Labels{});
  Counter& kv_moved_bytes =
      counters("lamella_kv_moved_bytes_total", "Bytes of the KV copied to such shards.")
          .Add(Labels{});
  Histogram& kv_move_seconds =
      histograms("lamella_kv_move_seconds",
                 "Time to copy the KV of a pool to the shards of a next epoch, while it decodes.")
          .Add(Labels{}, pause_buckets);
  Counter& kv_moves_aborted =
      counters("lamella_kv_moves_aborted_total", "Moves of KV that were given up.").Add(Labels{});
  Counter& prompts_overflowed =
      counters("lamella_prompts_overflowed_total",
               "Prompts that replicas computed beside decoding, because all prefill workers had "
               "long queues.")
          .Add(Labels{});
  Family<Counter>& placed = counters(
      "lamella_kv_placements_total",
      "New sequences by whether their KV is on the host of their replica, where there is a "
      "choice.");
  Counter& placed_near = placed.Add({{"distance", "near"}});
  Counter& placed_far = placed.Add({{"distance", "far"}});
  Counter& sequences_overflowed =
      counters("lamella_sequences_overflowed_total",
               "Sequences that decoded on machines for prompts, because all other batches were "
               "full.")
          .Add(Labels{});
  Counter& stood_back =
      counters("lamella_sequences_stood_back_total",
               "Rows of sequences that decode which were left out of a mixed launch, so that "
               "prompts went first.")
          .Add(Labels{});
  Gauge& mixed_replicas = gauges("lamella_mixed_replicas",
                                 "Replicas and prefill workers that decode and have prompts, too.")
                              .Add(Labels{});
  Histogram& launches_stopped = histograms("lamella_launches_stopped_seconds",
                                           "Time without launches while the next epoch takes over.")
                                    .Add(Labels{}, stop_buckets);
  Family<Gauge>& heartbeat_age =
      gauges("lamella_heartbeat_age_seconds",
             "Time since the last heartbeat of the worker in that seat; 0 in the control process.");
  Family<Gauge>& busy_ratio =
      gauges("lamella_role_busy_ratio", "Busy share of the worker since the last scrape, 0 to 1.");
  Family<Gauge>& worker_slow = gauges(
      "lamella_worker_slow", "1 while the worker is much slower than its peers (gray failure).");
  Family<Counter>& failovers =
      counters("lamella_failovers_total", "Workers replaced and links rebuilt, by role and cause.");
  Family<Counter>& recovered =
      counters("lamella_requests_recovered_total", "Requests recovered after a loss, by method.");
  Family<Histogram>& pause =
      histograms("lamella_recovery_pause_seconds",
                 "Pause of a request caused by the loss of a worker or its KV.");
  Gauge& recovering =
      gauges("lamella_requests_recovering", "Requests paused by the loss of a worker or its KV.")
          .Add(Labels{});
  Gauge& pause_alarm = gauges("lamella_recovery_alarm",
                              "1 while a request, or all, stall beyond recovery.max_pause_seconds.")
                           .Add(Labels{});
  Counter& pause_alarms =
      counters("lamella_recovery_alarms_total", "Times that lamella_recovery_alarm was raised.")
          .Add(Labels{});
  Counter& divergence =
      counters("lamella_divergence_total",
               "Recomputed tokens that differed from the committed ones; must stay 0.")
          .Add(Labels{});
  Family<Counter>& fenced =
      counters("lamella_fenced_total", "Late messages fenced (dropped), by reason.");
  Family<Counter>& frames_dropped =
      counters("lamella_frames_dropped_total",
               "Data plane frames dropped by workers of that role, by reason.");
  Family<Histogram>& kv_rebuild_seconds = histograms(
      "lamella_kv_rebuild_seconds", "Time from the loss of KV to its last rebuilt row, by method.");
  Family<Counter>& kv_rebuild_bytes =
      counters("lamella_kv_rebuild_bytes_total", "Bytes of lost KV that were rebuilt, by method.");
  Family<Gauge>& kv_usage = gauges("lamella_kv_usage_ratio", "Share of KV slots in use, 0 to 1.");
  Family<Gauge>& kv_slots = gauges("lamella_kv_slots", "KV slots by state.");
  Counter& kv_rebuilt_tokens = counters("lamella_kv_rebuilt_tokens_total",
                                        "Tokens whose lost KV was recomputed by the model.")
                                   .Add(Labels{});
  Counter& parity_checked = counters("lamella_parity_checked_slots_total",
                                     "KV slots whose parity was checked against the shards' rows.")
                                .Add(Labels{});
  Counter& parity_mismatches =
      counters("lamella_parity_mismatches_total",
               "KV slots with wrong parity: the memory of a worker is corrupt; must stay 0.")
          .Add(Labels{});
  Family<Counter>& integrity_failures = counters(
      "lamella_kv_integrity_failures_total", "Corrupt KV, by where the check failed; must stay 0.");
  Counter& digests_compared =
      counters("lamella_kv_digests_compared_total",
               "Positions whose KV digest was compared with that of an earlier epoch.")
          .Add(Labels{});
  Family<Gauge>& parity_lag =
      gauges("lamella_kv_parity_lag_tokens",
             "Tokens whose KV is unprotected (no parity yet): recomputed if a shard is lost.");
  Counter& parity_rebuilt = counters("lamella_parity_rebuilt_slots_total",
                                     "KV slots whose parity was rebuilt from the shards' rows.")
                                .Add(Labels{});
  Counter& kv_pulled_bytes = counters("lamella_kv_pulled_bytes_total",
                                      "Bytes of KV that shards pulled from prefill workers.")
                                 .Add(Labels{});
  Histogram& kv_pull_seconds =
      histograms("lamella_kv_pull_seconds", "Time of a pull, from its first wait to its last row.")
          .Add(Labels{}, iteration_buckets);
  Family<Histogram>& iteration_seconds =
      histograms("lamella_iteration_seconds", "Time of an iteration on one worker, by stage.");
  Family<Counter>& link_bytes =
      counters("lamella_link_bytes_total", "Payload bytes sent between workers.");
  Family<Histogram>& link_rtt = histograms(
      "lamella_link_rtt_seconds", "Round-trip time between two workers, minimum over 10 s.");
  Histogram& batch_size = histograms("lamella_batch_size", "Requests in a batch, per iteration.")
                              .Add(Labels{}, batch_buckets);
  Gauge& batches_in_flight =
      gauges("lamella_batches_in_flight", "Batches with an iteration in flight.").Add(Labels{});
  Family<Gauge>& mailbox =
      gauges("lamella_mailbox_depth",
             "Mailbox depth when an actor of that class last ran in the control process.");
  Gauge& ready = gauges("lamella_ready", "1 while /ready returns 200.").Add(Labels{});
  Family<Counter>& reloads = counters("lamella_config_reload_total", "Reloads by result.");
  Gauge& body_bytes =
      gauges("lamella_body_bytes",
             "Memory of request bodies of the public listener that are not parsed yet, and of what "
             "is kept of them.")
          .Add(Labels{});
  Counter& bodies_refused =
      counters("lamella_bodies_refused_total",
               "Requests of the public listener rejected because request bodies fill "
               "limits.bodies_bytes.")
          .Add(Labels{});
  http_families server{registry};
  Family<Counter>& log_dropped =
      counters("lamella_log_lines_dropped_total",
               "Log lines dropped: the reader is gone, or the disk is full or slow.");
  Counter& spans_exported =
      counters("lamella_spans_exported_total", "Spans of requests that a collector has taken.")
          .Add(Labels{});
  Family<Counter>& spans_dropped =
      counters("lamella_spans_dropped_total", "Spans of requests that no collector has taken.");
  Counter& traceparents = counters("lamella_traceparents_malformed_total",
                                   "Requests served without their malformed traceparent header.")
                              .Add(Labels{});
  Family<Gauge>& load = gauges("lamella_load_progress_ratio", "Progress of a load phase, 0 to 1.");
  Family<Counter>& unknown =
      counters("lamella_unknown_params_total", "Unknown fields ignored in request bodies.");

  std::mutex mutex; ///< of what follows
  /// The gauges of a worker's KV, which are set too often to be looked up each time.
  struct kv_series {
    std::array<Gauge*, std::size(slot_states)> slots{};
    Gauge* usage = nullptr;
  };
  std::map<std::string, kv_series, std::less<>> kv_by_worker;
  struct busy_series {
    Gauge* ratio = nullptr;
    double seconds = 0; ///< since `busy_since`
  };
  std::map<std::pair<std::string, std::string>, busy_series> busy_by_worker; ///< role, name
  std::chrono::steady_clock::time_point busy_since = std::chrono::steady_clock::now();
  std::set<uint32_t> in_flight; ///< batches
  std::set<std::string, std::less<>> unknown_names;
  std::set<std::string, std::less<>> codes;
  Gauge* cache_config_now = nullptr;

  /// `name` while there are few of them, else "other".
  std::string bounded(std::set<std::string, std::less<>>& known, std::string_view name) {
    const std::lock_guard lock(mutex);
    if (known.contains(name)) return text(name);
    if (known.size() >= names_max) return "other";
    return *known.emplace(name).first;
  }

  /// Recomputes the busy ratios, at most once a second.
  void tell_busy(std::chrono::steady_clock::time_point now);
  /// The highest of all workers' KV usage; with the mutex held.
  void tell_usage();

  void zero() {
    for (const auto end : ends) success.Add(with_model("finished_reason", end));
    for (const auto outcome : outcomes)
      requests.Add(
          {{"outcome", text(outcome)}, {"code", ""}, {"model_name", configured.model_name}});
    for (const auto reason : rejections) rejected.Add({{"reason", text(reason)}});
    for (const auto stage : stages)
      iteration_seconds.Add({{"stage", text(stage)}}, iteration_buckets);
    for (const auto phase : phases) load.Add({{"phase", text(phase)}});
    for (const auto method : methods) recovered.Add({{"method", text(method)}});
    for (const auto where : damages) integrity_failures.Add({{"where", text(where)}});
    parity_lag.Add({{"group", "main"}});
    for (const auto reason : fences) fenced.Add({{"reason", text(reason)}});
    for (const auto method : {"parity", "recompute"}) {
      kv_rebuild_seconds.Add({{"method", method}}, pause_buckets);
      kv_rebuild_bytes.Add({{"method", method}});
    }
    for (const auto result : {"ok", "error"}) reloads.Add({{"result", result}});
    for (const auto actor : mailboxes) mailbox.Add({{"actor", text(actor)}});
    unknown.Add({{"param", "other"}});
    log_dropped.Add({{"role", "control"}});
    for (const auto why : span_losses) spans_dropped.Add({{"reason", text(why)}});
    for (const auto role : roles) {
      log_dropped.Add({{"role", text(role)}});
      pool_members.Add({{"pool", text(role)}});
      pool_wish.Add({{"pool", text(role)}});
      pool_target.Add({{"pool", text(role)}});
      for (const auto how : change_ends)
        pool_changes.Add({{"pool", text(role)}, {"result", text(how)}});
      lost.Add({{"role", text(role)}});
      link_bytes.Add({{"peer_role", text(role)}, {"transport", "in_process"}});
      link_rtt.Add({{"peer_role", text(role)}, {"transport", "in_process"}}, rtt_buckets);
      for (const auto why : faults)
        frames_dropped.Add({{"role", text(role)}, {"reason", text(why)}});
      for (const auto cause : failover_words)
        failovers.Add({{"role", text(role)}, {"cause", text(cause)}});
      for (const auto method : methods)
        pause.Add({{"role", text(role)}, {"method", text(method)}}, pause_buckets);
    }
    build
        .Add({{"version", configured.version},
              {"commit", configured.commit},
              {"caf", configured.caf},
              {"simd", configured.simd}})
        .Set(1);
    for (const auto& [route, method] :
         {std::pair{api_route::chat_completions, "POST"}, std::pair{api_route::completions, "POST"},
          std::pair{api_route::models, "GET"}, std::pair{api_route::tokenize, "POST"},
          std::pair{api_route::detokenize, "POST"}}) {
      for (const auto status : {"2xx", "4xx", "5xx"})
        http.Add({{"handler", text(route_name(route))}, {"method", method}, {"status", status}});
      http_seconds.Add({{"handler", text(route_name(route))}, {"method", method}},
                       duration_buckets);
    }
  }
};

} // namespace lamella::net
