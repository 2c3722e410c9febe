#include "net/metrics/metrics_impl.hpp"

#include "net/metrics/metrics_text.hpp"

#include <algorithm>
#include <charconv>
#include <limits>
#include <optional>
#include <string>

namespace lamella::net {

namespace {

/// Brings a counter to a total that somebody else counts.
void raise(Counter& to, uint64_t total) {
  if (const auto more = static_cast<double>(total) - to.Value(); more > 0) to.Increment(more);
}

} // namespace

metrics::metrics(settings s) : impl_(std::make_unique<impl>(std::move(s))) {
  impl_->zero();
  const settings& configured = impl_->configured;
  const uint32_t block = std::max<uint32_t>(configured.slot_block, 1);
  set_cache_config(block, configured.slot_count / block);
  set_expected_time("launch", "", std::numeric_limits<double>::quiet_NaN(), 1); // not measured yet
  for (const auto& [role, name] : configured.workers) {
    set_worker_state(role, name, worker_condition::missing);
    set_worker_slow(role, name, false);
    set_heartbeat_age(role, name, 0);
    computed(role, name, 0);
    if (role == "attention") set_kv_slots(name, {});
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
  if (t.gap_count > 0) m.per_token.Observe(t.gaps / static_cast<double>(t.gap_count));
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

void metrics::prompt_overflowed() { impl_->prompts_overflowed.Increment(); }

void metrics::kv_placed(bool near, uint64_t sequences) {
  (near ? impl_->placed_near : impl_->placed_far).Increment(static_cast<double>(sequences));
}

void metrics::sequences_overflowed(uint64_t sequences) {
  impl_->sequences_overflowed.Increment(static_cast<double>(sequences));
}

void metrics::stood_back(uint64_t sequences) {
  impl_->stood_back.Increment(static_cast<double>(sequences));
}

void metrics::set_mixed_replicas(uint64_t replicas) {
  impl_->mixed_replicas.Set(static_cast<double>(replicas));
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

void metrics::iteration_times(iteration_stage stage, const std::vector<uint64_t>& more,
                              double seconds) {
  impl_->iteration_seconds
      .Add({{"stage", text(stages[static_cast<size_t>(stage)])}}, iteration_buckets)
      .ObserveMultiple({more.begin(), more.end()}, seconds);
}

void metrics::set_in_flight(uint32_t batch, bool in_flight) {
  const std::lock_guard lock(impl_->mutex);
  if (in_flight)
    impl_->in_flight.insert(batch);
  else
    impl_->in_flight.erase(batch);
  impl_->batches_in_flight.Set(static_cast<double>(impl_->in_flight.size()));
}

// --- KV slots

void metrics::kv_pulled(uint64_t bytes, double seconds) {
  impl_->kv_pulled_bytes.Increment(static_cast<double>(bytes));
  impl_->kv_pull_seconds.Observe(seconds);
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

void metrics::failover(std::string_view role, failover_cause cause) {
  impl_->failovers
      .Add({{"role", text(role)}, {"cause", text(failover_words[static_cast<size_t>(cause)])}})
      .Increment();
}

void metrics::request_lost(std::string_view role) {
  impl_->lost.Add({{"role", text(role)}}).Increment();
}

void metrics::request_poisoned() { impl_->poisoned.Increment(); }

void metrics::diverged() { impl_->divergence.Increment(); }

void metrics::fenced(fence why) {
  impl_->fenced.Add({{"reason", text(fences[static_cast<size_t>(why)])}}).Increment();
}

void metrics::frames_dropped(std::string_view role, frame_fault why, uint64_t frames) {
  impl_->frames_dropped
      .Add({{"role", text(role)}, {"reason", text(faults[static_cast<size_t>(why)])}})
      .Increment(static_cast<double>(frames));
}

void metrics::set_recovering(uint64_t requests, bool alarm) {
  impl_->recovering.Set(static_cast<double>(requests));
  if (alarm && impl_->pause_alarm.Value() == 0) impl_->pause_alarms.Increment();
  impl_->pause_alarm.Set(alarm ? 1 : 0);
}

void metrics::set_http(const http_totals& now) {
  const auto& server = impl_->server;
  server.connections.Set(static_cast<double>(now.connections));
  server.requests_open.Set(static_cast<double>(now.requests_open));
  server.answer_bytes.Set(static_cast<double>(now.answer_bytes));
  raise(server.accepted, now.accepted);
  raise(server.refused, now.refused);
  raise(server.errors, now.errors);
  raise(server.disconnects, now.disconnects);
  raise(server.stalls, now.stalls);
  raise(server.answers_refused, now.answers_refused);
}

void metrics::set_bodies(uint64_t bytes, uint64_t refused) {
  impl_->body_bytes.Set(static_cast<double>(bytes));
  raise(impl_->bodies_refused, refused);
}

void metrics::log_dropped(std::string_view role, uint64_t lines) {
  impl_->log_dropped.Add({{"role", text(role)}}).Increment(static_cast<double>(lines));
}

void metrics::kv_remade_bytes(std::string_view method, uint64_t bytes) {
  impl_->kv_rebuild_bytes.Add({{"method", text(method)}}).Increment(static_cast<double>(bytes));
}

void metrics::kv_remade(std::string_view method, double seconds) {
  impl_->kv_rebuild_seconds.Add({{"method", text(method)}}, pause_buckets).Observe(seconds);
}

void metrics::parity_checked(uint64_t slots, uint64_t wrong) {
  impl_->parity_checked.Increment(static_cast<double>(slots));
  impl_->parity_mismatches.Increment(static_cast<double>(wrong));
  impl_->integrity_failures.Add({{"where", text(damages[static_cast<size_t>(kv_damage::rest)])}})
      .Increment(static_cast<double>(wrong));
}

void metrics::kv_damaged(kv_damage where) {
  impl_->integrity_failures.Add({{"where", text(damages[static_cast<size_t>(where)])}}).Increment();
}

void metrics::digests_compared(uint64_t positions) {
  impl_->digests_compared.Increment(static_cast<double>(positions));
}

void metrics::set_parity_lag(std::string_view pool, uint64_t tokens) {
  impl_->parity_lag.Add({{"group", text(pool)}}).Set(static_cast<double>(tokens));
}

void metrics::parity_rebuilt(uint64_t slots) {
  impl_->parity_rebuilt.Increment(static_cast<double>(slots));
}

void metrics::kv_rebuilt(uint64_t tokens) {
  impl_->kv_rebuilt_tokens.Increment(static_cast<double>(tokens));
}

void metrics::request_recovered(std::string_view method) {
  impl_->recovered.Add({{"method", text(method)}}).Increment();
}

void metrics::recovery_pause(std::string_view role, std::string_view method, double seconds) {
  impl_->pause.Add({{"role", text(role)}, {"method", text(method)}}, pause_buckets)
      .Observe(seconds);
}

void metrics::link_rtt(std::string_view peer_role, std::string_view transport, double seconds) {
  impl_->link_rtt.Add({{"peer_role", text(peer_role)}, {"transport", text(transport)}}, rtt_buckets)
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

void metrics::spans_exported(uint64_t spans) {
  impl_->spans_exported.Increment(static_cast<double>(spans));
}

void metrics::spans_dropped(std::string_view reason, uint64_t spans) {
  impl_->spans_dropped.Add({{"reason", text(reason)}}).Increment(static_cast<double>(spans));
}

void metrics::traceparent_malformed() { impl_->traceparents.Increment(); }

void metrics::set_load_progress(std::string_view phase, double ratio) {
  impl_->load.Add({{"phase", text(phase)}}).Set(ratio);
}

// --- scraping

namespace {

std::string_view without_blanks(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

/// The highest q of a media range in an Accept header, which is in lower case; nothing where the
/// header does not name the range.
std::optional<double> quality_of(std::string_view accept, std::string_view range) {
  std::optional<double> best;
  while (!accept.empty()) {
    auto item = accept.substr(0, accept.find(','));
    accept.remove_prefix(std::min(accept.size(), item.size() + 1));
    double q = 1;
    auto end = item.find(';');
    if (without_blanks(item.substr(0, end)) != range) continue;
    while (end != item.npos) {
      item.remove_prefix(end + 1);
      end = item.find(';');
      const auto parameter = without_blanks(item.substr(0, end));
      if (parameter.starts_with("q="))
        std::from_chars(parameter.data() + 2, parameter.data() + parameter.size(), q);
    }
    best = std::max(best.value_or(0), q);
  }
  return best;
}

/// Whether a client that sends this Accept header names OpenMetrics, and likes it no less than
/// plain text.
bool prefers_openmetrics(std::string_view accept) {
  std::string text(accept);
  std::transform(text.begin(), text.end(), text.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  const auto open = quality_of(text, "application/openmetrics-text").value_or(0);
  if (open <= 0) return false;
  for (const char* range : {"text/plain", "text/*", "*/*"})
    if (const auto plain = quality_of(text, range)) return open >= *plain;
  return true;
}

} // namespace

metrics::page metrics::scrape(std::string_view accept,
                              std::chrono::steady_clock::time_point now) const {
  impl_->tell_busy(now);
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
  if (prefers_openmetrics(accept))
    return {"application/openmetrics-text; version=1.0.0; charset=utf-8",
            openmetrics_text(families)};
  return {"text/plain; version=0.0.4; charset=utf-8", prometheus_text(families)};
}

std::string metrics::samples(std::span<const std::string_view> names) const {
  auto families = impl_->registry.Collect();
  std::erase_if(families, [&](const auto& family) {
    return std::ranges::none_of(names, [&](auto name) { return name.starts_with(family.name); });
  });
  const auto all = prometheus_text(families);
  std::string result;
  for (size_t from = 0; from < all.size();) {
    const auto line = std::string_view{all}.substr(from, all.find('\n', from) - from + 1);
    if (std::ranges::find(names, line.substr(0, line.find_first_of("{ "))) != names.end())
      result += line;
    from += line.size();
  }
  return result;
}

} // namespace lamella::net
