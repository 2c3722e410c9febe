#include "actors/node/node_impl.hpp"

#include "actors/machine/sizing.hpp"
#include "actors/node/roster.hpp"
#include "actors/protocol/epochs.hpp"
#include "actors/protocol/pools.hpp"
#include "actors/request/chat/chat_input.hpp"
#include "actors/shared/build_info.hpp"

#include <spdlog/spdlog.h>

#include <fmt/chrono.h>
#include <fmt/format.h>

namespace lamella::actors {

namespace {

uint64_t hash_of(std::string_view text, uint64_t seed) {
  uint64_t h = 0xcbf29ce484222325 ^ seed;
  for (unsigned char c : text) h = (h ^ c) * 0x100000001b3;
  return h;
}

/// version + numerics_id: two answers with one fingerprint came from the same arithmetic
/// (decision 29).
std::string fingerprint_of(const std::string& numerics, uint64_t digest) {
  const auto id = hash_of(numerics, digest);
  return fmt::format("lamella-{}-{:08x}", LAMELLA_VERSION, static_cast<uint32_t>(id ^ id >> 32));
}

net::api_limits limits_of(const config::settings& options, uint32_t vocabulary) {
  net::api_limits x;
  x.messages = options.limits.messages_per_chat;
  x.prompts = options.limits.prompts_per_request;
  x.max_n = std::min(options.limits.max_n, options.batching.max_batch);
  x.best_of = std::min(options.limits.best_of, options.batching.max_batch);
  x.top_logprobs = options.limits.top_logprobs;
  x.prompt_logprobs = options.limits.prompt_logprobs;
  x.logit_bias = options.limits.logit_bias_entries;
  x.stop_strings = options.limits.stop_strings;
  x.stop_string_bytes = options.limits.stop_string_bytes;
  x.prompt_tokens = options.limits.prompt_tokens;
  x.tokens_per_request = options.limits.tokens_per_request;
  x.default_max_tokens = options.limits.default_output_tokens;
  x.vocabulary = vocabulary;
  x.strict = options.api.strict;
  return x;
}

/// Of each lane: enough that one long job is not alone, and few beside those that compute.
uint32_t aside_workers() { return std::clamp(usable_processors() / 2, 1u, 4u); }

net::api_keys keys_from(const std::filesystem::path& file) {
  try {
    return net::api_keys::from_option(file);
  } catch (const std::exception& e) {
    throw start_error{78, e.what()};
  }
}

} // namespace

std::chrono::milliseconds answer_time(std::chrono::milliseconds deadline) {
  return deadline + std::chrono::minutes{1};
}

std::shared_ptr<const net::tls_identity> identity_of(const config::settings& x) {
  if (!x.http.https()) return nullptr;
  auto made = net::tls_identity::from_files(x.http.tls_certificate, x.http.tls_key);
  const auto expires = fmt::format("{:%FT%TZ}", made->expires());
  if (made->expired())
    spdlog::warn("https certificate={} expired={}: clients will reject it",
                 x.http.tls_certificate.string(), expires);
  else
    spdlog::info("https certificate={} expires={}", x.http.tls_certificate.string(), expires);
  return made;
}

request_rules node::impl::rules_of(const config::settings& x) const {
  auto limits = limits_of(x, model.text->vocabulary());
  if (const auto& chat = parts->base.chat)
    limits.template_reads = [chat = *chat](std::string_view member) { return chat.reads(member); };
  return {std::move(limits),
          x.limits.request_deadline,
          {x.limits.queue_requests, x.limits.queue_tokens}};
}

void node::impl::describe_service() {
  const auto& spec = model.program->spec;
  auto& base = parts->base;
  base.text = model.text;
  use_chat_template(base, model.file->chat_template());
  base.model_file = model.file->path().string();
  base.model_name = options.model.name.empty() ? model.file->file_name() : options.model.name;
  base.aliases = options.model.aliases;
  base.created = base.world.seconds_since_1970();
  base.context_tokens = options.model.context_tokens.value_or(spec.context_tokens);
  model_digest = model.file->digest();
  base.fingerprint =
      fingerprint_of(numerics_of(options, model_numerics, attention_numerics), model_digest);
  for (model::token_id t = 0; t < model.text->vocabulary(); ++t)
    if (model.text->is_end(t)) base.end_tokens.push_back(t);
  base.constraints =
      std::make_shared<constraint_store>(model.text, base.end_tokens, spec.vocabulary);
  if (options.http.responses_keep.count() > 0)
    base.responses =
        std::make_shared<response_store>(options.http.responses_keep, options.http.responses_bytes);
  base.rules = rules_of(options);
  base.ping = options.http.sse_ping;
  base.piece_bytes = std::min<size_t>(base.piece_bytes, options.http.stream_buffer_bytes);
  metrics = make_metrics();
  metrics->set_load_progress("map", 1); // or there would be nothing to describe
  base.metrics = parts->metrics = metrics;
  exporter = make_exporter();
  base.traces = std::make_shared<request_traces>();
  base.traces->spans = exporter;
  trace_by(options.traces);
  base.suspects = parts->suspects;
  base.load = std::make_shared<load_window>();
  parts->health = health;
  parts->options.set(options);
  parts->program = model.program;
}

void node::impl::note_numerics(const epoch_members& workers) {
  const auto note = [](gpu::device_numerics& to, const pool_numerics& said) {
    if (!said.kernels.empty()) to = {said.kernels, said.sizes};
  };
  note(model_numerics, workers.compute);
  note(attention_numerics, workers.attention);
  auto now = fingerprint_of(numerics_of(options, model_numerics, attention_numerics), model_digest);
  if (now != parts->base.fingerprint) parts->base.fingerprint = std::move(now); // the first time
}

std::shared_ptr<net::metrics> node::impl::make_metrics() const {
  net::metrics::settings m;
  m.model_name = parts->base.model_name;
  m.context_tokens = parts->base.context_tokens;
  m.version = LAMELLA_VERSION;
  m.commit = build_commit();
  m.caf = "0.17.6";
  m.simd = kernels();
  using scheduler::worker_role;
  const auto seats = seats_of(options);
  for (auto role : {worker_role::model, worker_role::attention, worker_role::prefill}) {
    const std::string name{scheduler::to_string(role)};
    for (uint32_t i = 0; i < seats.members(role); ++i)
      m.workers.push_back({name, name + "-" + std::to_string(i)});
  }
  m.slot_count = parts->layout.slots();
  return std::make_shared<net::metrics>(m);
}

std::shared_ptr<net::span_exporter> node::impl::make_exporter() const {
  net::span_exporter_settings x;
  x.source = {{{"service.name", std::string{"lamella"}},
               {"service.version", std::string{LAMELLA_VERSION}},
               {"service.instance.id", fmt::format("{:016x}", parts->base.world.chance())}},
              "lamella",
              LAMELLA_VERSION};
  x.on_exported = [to = metrics](uint64_t spans) { to->spans_exported(spans); };
  x.on_lost = [to = metrics](net::span_loss why, uint64_t spans) {
    constexpr std::string_view reasons[] = {"queue", "collector", "stopped"};
    to->spans_dropped(reasons[static_cast<size_t>(why)], spans);
  };
  x.on_failing = [](const std::string& why) {
    spdlog::warn("traces error=\"{}\": the collector does not take spans, which are dropped", why);
  };
  return std::make_shared<net::span_exporter>(std::move(x));
}

void node::impl::trace_by(const config::traces_settings& x) {
  parts->base.traces->sample_percent = x.sample_percent;
  exporter->set_endpoint(x.endpoint);
}

gateway_config node::impl::gateway_settings() {
  gateway_config c;
  c.aside = parts->base.aside;
  c.bodies = public_memory.bodies;
  c.http = http->counter();
  c.health = health;
  c.metrics = metrics;
  c.keys = keys_from(options.http.api_keys_file);
  c.admin_keys = keys_from(options.admin.api_keys_file);
  c.public_probes = options.http.probes;
  c.public_page = options.http.ui;
  c.version = LAMELLA_VERSION;
  c.partition = !options.pools.attention.cells.empty()                             ? "cells"
                : options.pools.attention.partition == config::partition::requests ? "requests"
                                                                                   : "heads";
  c.attention_members = options.pools.attention.members;
  c.chaos = options.chaos.enabled;
  c.world = parts->base.world;
  c.on_drain = [this] {
    if (!drained.exchange(true)) end_callback(false);
  };
  c.on_reload = [this] { return reload(); };
  c.queued = [outcomes = resizes] { return queued_changes(*outcomes); };
  return c;
}

void node::impl::make_http() {
  net::http_server::settings s;
  s.version = LAMELLA_VERSION;
  s.limits.connections = options.http.connections_max;
  s.limits.connections_per_address = options.http.connections_per_address_max;
  s.limits.body_bytes = options.http.max_body_bytes;
  s.limits.stall_time = s.limits.answer_rate_after = options.http.stream_stall;
  s.limits.stream_buffer_bytes = options.http.stream_buffer_bytes;
  s.limits.answer_time = answer_time(options.limits.request_deadline);
  std::vector<net::http_listener> listeners;
  const auto add = [&](const char* name, const std::string& address, bool probes) {
    const auto where = config::parse_address(address);
    if (!where) throw start_error{78, std::string{name} + ": bad address " + address};
    listeners.push_back(
        {name, where->host, where->port, [this, probes](net::http_exchange_ptr exchange) {
           if (probes && answer_probe(*health, *metrics, exchange)) return;
           caf::anon_send(front, std::move(exchange));
         }});
  };
  add("public", options.http.listen, options.http.probes);
  listeners.back().memory = public_memory;
  listeners.back().pages = net::cors_policy{options.http.cors_origins};
  try {
    listeners.back().identity = identity_of(options);
  } catch (const net::tls_identity_error& e) {
    throw start_error{78, e.what(), "set http.tls_certificate and http.tls_key to PEM files"};
  }
  add("admin", options.admin.listen, true);
  listeners.back().memory = admin_memory;
  http = std::make_unique<net::http_server>(s, std::move(listeners));
}

void node::impl::listen() {
  parts->base.aside = system.spawn(aside, aside_config{aside_workers()});
  make_http();
  front = system.spawn(gateway, gateway_settings());
  try {
    http->start();
  } catch (const net::http_listen_error& e) {
    throw start_error{69, e.what(), "choose another address with http.listen or admin.listen"};
  }
}

} // namespace lamella::actors
