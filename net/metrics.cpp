#include "net/metrics.hpp"

#include "net/api_route.hpp"
#include "net/metrics_text.hpp"
#include "net/metrics_words.hpp"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <set>

namespace lamella::net {

using namespace metric_words;
using prometheus::Counter;
using prometheus::Family;
using prometheus::Gauge;
using prometheus::Histogram;
using prometheus::Labels;
using prometheus::Registry;

namespace {
std::string text(std::string_view view) { return std::string(view); }
} // namespace

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
  Gauge& running = gauge("vllm:num_requests_running", "Requests in a batch.");
  Gauge& waiting = gauge("vllm:num_requests_waiting", "Requests admitted and waiting.");
  Gauge& usage = gauge("vllm:kv_cache_usage_perc",
                       "Highest share of KV slots in use of any attention worker, 0 to 1.");
  Family<Gauge>& cache_config =
      gauges("vllm:cache_config_info", "Sizes of the KV cache as labels; always 1.");
  Counter& prompt_tokens = counter("vllm:prompt_tokens_total", "Prompt tokens processed.");
  Counter& generation_tokens = counter("vllm:generation_tokens_total", "Tokens generated.");
  Family<Counter>& success =
      counters("vllm:request_success_total", "Requests finished, by how they ended.");
  Counter& preemptions =
      counter("vllm:num_preemptions_total", "Requests whose KV was dropped to make room.");
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
                "Decode time of a request per token after the first.", gap_buckets);
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
  Family<Gauge>& build = gauges("lamella_build_info", "What is running, as labels; always 1.");
  Family<Counter>& requests =
      counters("lamella_requests_total", "Requests by how they ended and error code.");
  Family<Counter>& lost =
      counters("lamella_requests_lost_total", "Requests lost with a worker; must stay 0.");
  Family<Counter>& rejected =
      counters("lamella_admission_rejected_total", "Requests that admission refused, by reason.");
  Family<Gauge>& worker_up = gauges("lamella_worker_up", "1 while the worker serves.");
  Family<Counter>& failovers =
      counters("lamella_failovers_total", "Workers replaced, by role and cause.");
  Family<Counter>& recovered =
      counters("lamella_requests_recovered_total", "Requests that survived a loss, by method.");
  Family<Histogram>& pause =
      histograms("lamella_recovery_pause_seconds", "Pause of a request caused by a loss.");
  Family<Gauge>& kv_usage = gauges("lamella_kv_usage_ratio", "Share of KV slots in use, 0 to 1.");
  Family<Gauge>& kv_slots = gauges("lamella_kv_slots", "KV slots by state.");
  Family<Histogram>& iteration_seconds =
      histograms("lamella_iteration_seconds", "Time of an iteration by stage.");
  Family<Counter>& link_bytes =
      counters("lamella_link_bytes_total", "Payload bytes sent between workers.");
  Histogram& batch_size = histograms("lamella_batch_size", "Requests in a batch, per iteration.")
                              .Add(Labels{}, batch_buckets);
  Gauge& batches_in_flight =
      gauges("lamella_batches_in_flight", "Batches with an iteration under way.").Add(Labels{});
  Family<Gauge>& mailbox = gauges("lamella_mailbox_depth", "Messages waiting, by class of actor.");
  Family<Counter>& reloads = counters("lamella_config_reload_total", "Reloads by result.");
  Family<Gauge>& load = gauges("lamella_load_progress_ratio", "Progress of a load phase, 0 to 1.");
  Family<Counter>& unknown =
      counters("lamella_unknown_params_total", "Unknown fields ignored in request bodies.");

  std::mutex mutex; ///< of what follows
  std::map<std::string, double, std::less<>> usage_by_worker;
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
    for (const auto result : {"ok", "error"}) reloads.Add({{"result", result}});
    for (const auto actor : {"gateway", "request", "scheduler", "batch", "replica", "shard"})
      mailbox.Add({{"actor", actor}});
    unknown.Add({{"param", "other"}});
    for (const auto role : roles) {
      lost.Add({{"role", text(role)}});
      link_bytes.Add({{"peer_role", text(role)}, {"transport", "in_process"}});
      for (const auto cause : causes) failovers.Add({{"role", text(role)}, {"cause", text(cause)}});
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

metrics::metrics(settings s) : impl_(std::make_unique<impl>(std::move(s))) {
  impl_->zero();
  const settings& configured = impl_->configured;
  const uint32_t block = std::max<uint32_t>(configured.slot_block, 1);
  set_cache_config(block, configured.slot_count / block);
  for (const auto& [role, name] : configured.workers) {
    set_worker_up(role, name, false);
    if (role != "attention") continue;
    for (size_t state = 0; state < std::size(slot_states); ++state)
      set_kv_slots(name, static_cast<slot_state>(state), 0);
    set_kv_usage(name, 0);
  }
}

metrics::~metrics() = default;

// --- requests

void metrics::request_finished(const request_times& t) {
  impl& m = *impl_;
  m.e2e.Observe(t.e2e);
  m.queue.Observe(t.queue);
  m.prefill.Observe(t.prefill);
  m.decode.Observe(t.decode);
  m.inference.Observe(t.prefill + t.decode);
  const double per_choice =
      static_cast<double>(t.generated_tokens) / static_cast<double>(std::max(t.n, 1u));
  if (per_choice > 1) m.per_token.Observe(t.decode / (per_choice - 1));
  m.request_prompt.Observe(static_cast<double>(t.prompt_tokens));
  m.request_generation.Observe(static_cast<double>(t.generated_tokens));
  m.request_max_tokens.Observe(t.max_tokens);
  m.request_n.Observe(t.n);
  m.success.Add(m.with_model("finished_reason", ends[static_cast<size_t>(t.end)])).Increment();
}

void metrics::request_ended(request_outcome outcome, std::string_view code) {
  impl& m = *impl_;
  m.requests
      .Add({{"outcome", text(outcomes[static_cast<size_t>(outcome)])},
            {"code", code.empty() ? "" : m.bounded(m.codes, code)},
            {"model_name", m.configured.model_name}})
      .Increment();
}

void metrics::admission_rejected(rejection reason) {
  impl_->rejected.Add({{"reason", text(rejections[static_cast<size_t>(reason)])}}).Increment();
}

void metrics::first_token(double seconds) { impl_->first_token.Observe(seconds); }
void metrics::token_gap(double seconds) { impl_->gap.Observe(seconds); }
void metrics::tokens_prompted(uint64_t n) {
  impl_->prompt_tokens.Increment(static_cast<double>(n));
}
void metrics::tokens_generated(uint64_t n) {
  impl_->generation_tokens.Increment(static_cast<double>(n));
}
void metrics::preempted() { impl_->preemptions.Increment(); }

void metrics::prefix_cache(uint64_t queried_tokens, uint64_t hit_tokens) {
  impl_->prefix_queries.Increment(static_cast<double>(queried_tokens));
  impl_->prefix_hits.Increment(static_cast<double>(hit_tokens));
}

void metrics::set_requests(uint64_t running, uint64_t waiting) {
  impl_->running.Set(static_cast<double>(running));
  impl_->waiting.Set(static_cast<double>(waiting));
}

void metrics::unknown_param(std::string_view name) {
  impl_->unknown.Add({{"param", impl_->bounded(impl_->unknown_names, name.substr(0, 64))}})
      .Increment();
}

void metrics::http_request(std::string_view handler, std::string_view method, int status,
                           double seconds) {
  constexpr std::string_view classes[] = {"1xx", "2xx", "3xx", "4xx", "5xx"};
  constexpr std::string_view verbs[] = {"GET", "HEAD", "POST", "OPTIONS", "PUT", "DELETE", "PATCH"};
  const bool known = std::find(std::begin(verbs), std::end(verbs), method) != std::end(verbs);
  const std::string verb = known ? text(method) : "other";
  const auto group = classes[static_cast<size_t>(std::clamp(status / 100, 1, 5) - 1)];
  impl_->http.Add({{"handler", text(handler)}, {"method", verb}, {"status", text(group)}})
      .Increment();
  impl_->http_seconds.Add({{"handler", text(handler)}, {"method", verb}}, duration_buckets)
      .Observe(seconds);
}

// --- iterations

void metrics::iteration(uint64_t tokens, uint64_t batch_size) {
  impl_->iteration_tokens.Observe(static_cast<double>(tokens));
  impl_->batch_size.Observe(static_cast<double>(batch_size));
}

void metrics::iteration_time(iteration_stage stage, double seconds) {
  impl_->iteration_seconds
      .Add({{"stage", text(stages[static_cast<size_t>(stage)])}}, iteration_buckets)
      .Observe(seconds);
}

void metrics::set_batches_in_flight(uint64_t batches) {
  impl_->batches_in_flight.Set(static_cast<double>(batches));
}

// --- KV slots

void metrics::set_kv_slots(std::string_view worker, slot_state state, uint64_t slots) {
  impl_->kv_slots
      .Add({{"role", "attention"},
            {"worker", text(worker)},
            {"state", text(slot_states[static_cast<size_t>(state)])}})
      .Set(static_cast<double>(slots));
}

void metrics::set_kv_usage(std::string_view worker, double ratio) {
  impl_->kv_usage.Add({{"role", "attention"}, {"worker", text(worker)}}).Set(ratio);
  const std::lock_guard lock(impl_->mutex);
  impl_->usage_by_worker.insert_or_assign(text(worker), ratio);
  double highest = 0;
  for (const auto& [name, each] : impl_->usage_by_worker) highest = std::max(highest, each);
  impl_->usage.Set(highest);
}

void metrics::set_cache_config(uint64_t block_slots, uint64_t blocks) {
  const std::lock_guard lock(impl_->mutex);
  Labels labels = impl_->model;
  labels.emplace("block_size", std::to_string(block_slots));
  labels.emplace("num_gpu_blocks", std::to_string(blocks));
  Gauge& now = impl_->cache_config.Add(labels);
  now.Set(1);
  if (impl_->cache_config_now && impl_->cache_config_now != &now)
    impl_->cache_config.Remove(impl_->cache_config_now);
  impl_->cache_config_now = &now;
}

// --- the cluster

void metrics::set_worker_up(std::string_view role, std::string_view worker, bool up) {
  impl_->worker_up.Add({{"role", text(role)}, {"worker", text(worker)}}).Set(up ? 1 : 0);
}

void metrics::remove_worker(std::string_view role, std::string_view worker) {
  Family<Gauge>& up = impl_->worker_up;
  up.Remove(&up.Add({{"role", text(role)}, {"worker", text(worker)}}));
  if (role != "attention") return;
  Family<Gauge>& usage = impl_->kv_usage;
  usage.Remove(&usage.Add({{"role", text(role)}, {"worker", text(worker)}}));
  for (const auto state : slot_states)
    impl_->kv_slots.Remove(&impl_->kv_slots.Add(
        {{"role", text(role)}, {"worker", text(worker)}, {"state", text(state)}}));
  const std::lock_guard lock(impl_->mutex);
  if (const auto it = impl_->usage_by_worker.find(worker); it != impl_->usage_by_worker.end())
    impl_->usage_by_worker.erase(it);
}

void metrics::failover(std::string_view role, std::string_view cause) {
  impl_->failovers.Add({{"role", text(role)}, {"cause", text(cause)}}).Increment();
}

void metrics::request_lost(std::string_view role) {
  impl_->lost.Add({{"role", text(role)}}).Increment();
}

void metrics::request_recovered(std::string_view method) {
  impl_->recovered.Add({{"method", text(method)}}).Increment();
}

void metrics::recovery_pause(std::string_view role, std::string_view method, double seconds) {
  impl_->pause.Add({{"role", text(role)}, {"method", text(method)}}, pause_buckets)
      .Observe(seconds);
}

void metrics::link_bytes(std::string_view peer_role, std::string_view transport, uint64_t bytes) {
  impl_->link_bytes.Add({{"peer_role", text(peer_role)}, {"transport", text(transport)}})
      .Increment(static_cast<double>(bytes));
}

void metrics::set_mailbox_depth(std::string_view actor_class, uint64_t depth) {
  impl_->mailbox.Add({{"actor", text(actor_class)}}).Set(static_cast<double>(depth));
}

void metrics::config_reloaded(bool ok) {
  impl_->reloads.Add({{"result", ok ? "ok" : "error"}}).Increment();
}

void metrics::set_load_progress(std::string_view phase, double ratio) {
  impl_->load.Add({{"phase", text(phase)}}).Set(ratio);
}

// --- scraping

metrics::page metrics::scrape(std::string_view accept) const {
  auto families = impl_->registry.Collect();
  auto process = process_families();
  families.insert(families.end(), std::make_move_iterator(process.begin()),
                  std::make_move_iterator(process.end()));
  std::sort(families.begin(), families.end(),
            [](const auto& a, const auto& b) { return a.name < b.name; });
  // The library keeps series in hash order; ours is the same at every scrape.
  for (auto& family : families)
    std::sort(family.metric.begin(), family.metric.end(),
              [](const auto& a, const auto& b) { return a.label < b.label; });
  if (accept.find("application/openmetrics-text") != std::string_view::npos)
    return {"application/openmetrics-text; version=1.0.0; charset=utf-8",
            openmetrics_text(families)};
  return {"text/plain; version=0.0.4; charset=utf-8", prometheus_text(families)};
}

} // namespace lamella::net
