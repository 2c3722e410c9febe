#include "config/option_table.hpp"

#include <algorithm>
#include <string_view>

namespace lamella::config {
namespace {

std::string check_served_name(const std::string& text) {
  if (text.size() > 256) return "is longer than 256 bytes";
  for (const char c : text)
    if (static_cast<unsigned char>(c) <= ' ' || c == 0x7f || c == '"' || c == '\\')
      return "contains a space, quote, backslash or control character";
  return {};
}

/// As browsers write them, since they are compared letter by letter.
std::string check_origin(const std::string& text) {
  if (text == "*") return {};
  const auto within = [](std::string_view part, std::string_view others) {
    return std::ranges::all_of(part, [&](char c) {
      return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || others.find(c) != others.npos;
    });
  };
  const auto scheme = text.find("://");
  if (scheme == text.npos || scheme == 0
      || !within(std::string_view{text}.substr(0, scheme), "+-."))
    return "does not begin with a lower-case scheme, such as https://";
  const auto host = std::string_view{text}.substr(scheme + 3);
  if (host.empty()) return "has no host";
  if (host.find('/') != host.npos)
    return "has a path: an origin is scheme, host and port, without a / at the end";
  if (!within(host, "-._:[]"))
    return "has a capital letter or another character not allowed in a host";
  return {};
}

void add_listeners(table& t) {
  t.plain(
      "http.listen", option_kind::address, reload::restart,
      "Address of the public API; beyond loopback, http.api_keys_file is required.",
      [](settings & s) -> auto& { return s.http.listen; });
  t.plain(
      "http.api_keys_file", option_kind::path, reload::live,
      "File with the API keys, one per line; # starts a comment.",
      [](settings & s) -> auto& { return s.http.api_keys_file; });
  t.plain(
      "http.tls_certificate", option_kind::path, reload::restart,
      "Certificate chain (PEM) of the public API; enables HTTPS; reread on reload.",
      [](settings & s) -> auto& { return s.http.tls_certificate; });
  t.plain(
      "http.tls_key", option_kind::path, reload::restart,
      "Private key (PEM) of the certificate; reread on reload.",
      [](settings & s) -> auto& { return s.http.tls_key; });
  auto& origins = t.plain(
      "http.cors_origins", option_kind::text_list, reload::restart,
      "CORS origins allowed to use the API, such as https://chat.example.org; \"*\": all.",
      [](settings & s) -> auto& { return s.http.cors_origins; });
  origins.allowed = check_origin;
  origins.maximum = 64;
  t.bytes(
      "http.max_body_bytes", reload::restart, kib, gib,
      "Largest accepted request body; it must arrive within 30 seconds.",
      [](settings & s) -> auto& { return s.http.max_body_bytes; });
  t.seconds(
      "http.sse_ping_seconds", reload::restart, 0, 3600 * second,
      "Idle time of a stream after which a keep-alive comment is sent; 0 disables it.",
      [](settings & s) -> auto& { return s.http.sse_ping; });
  t.bytes(
      "http.stream_buffer_bytes", reload::restart, 4 * kib, 64 * mib,
      "Rendered text buffered for a slow client before its request pauses.",
      [](settings & s) -> auto& { return s.http.stream_buffer_bytes; });
  t.seconds(
      "http.stream_stall_seconds", reload::restart, second, 3600 * second,
      "Time for which a client may read nothing before its stream is cancelled.",
      [](settings & s) -> auto& { return s.http.stream_stall; });
  t.integer(
      "http.connections_max", reload::restart, 1, 1'000'000,
      "Maximum open connections of each listener.",
      [](settings & s) -> auto& { return s.http.connections_max; });
  t.integer(
      "http.connections_per_address_max", reload::restart, 1, 1'000'000,
      "Maximum open connections from one client address to each listener.",
      [](settings & s) -> auto& { return s.http.connections_per_address_max; });
  t.plain(
      "http.probes", option_kind::boolean, reload::restart,
      "Serves /live, /ready, /health and /metrics on the public listener too.",
      [](settings & s) -> auto& { return s.http.probes; });
  t.plain(
      "http.ui", option_kind::boolean, reload::restart,
      "Serves a chat page for browsers at / of the public listener.",
      [](settings & s) -> auto& { return s.http.ui; });
}

void add_responses(table& t) {
  t.seconds(
      "http.responses_keep_seconds", reload::restart, 0, 7 * 86'400 * second,
      "Time for which a finished response may be continued, read and deleted; 0 keeps none.",
      [](settings & s) -> auto& { return s.http.responses_keep; });
  t.bytes(
      "http.responses_bytes", reload::restart, kib, tib,
      "Memory of all finished responses that are kept; beyond it the oldest are forgotten.",
      [](settings & s) -> auto& { return s.http.responses_bytes; });
}

void add_admin(table& t) {
  t.plain(
      "admin.listen", option_kind::address, reload::restart,
      "Address of the admin listener; beyond loopback, admin.api_keys_file is required.",
      [](settings & s) -> auto& { return s.admin.listen; });
  t.plain(
      "admin.api_keys_file", option_kind::path, reload::live,
      "File with the API keys of the admin listener.",
      [](settings & s) -> auto& { return s.admin.api_keys_file; });
}

void add_model(table& t) {
  t.plain(
      "model.path", option_kind::path, reload::restart,
      "GGUF file or Hugging Face directory; empty: the default model of "
      "`lamella model fetch`.",
      [](settings & s) -> auto& { return s.model.path; });
  auto& name = t.plain(
      "model.name", option_kind::text, reload::restart,
      "Model name in the API; empty: the name of the model's file or directory.",
      [](settings & s) -> auto& { return s.model.name; });
  name.allowed = check_served_name;
  name.maximum = 256;
  auto& more = t.plain(
      "model.aliases", option_kind::text_list, reload::restart,
      "Further model names accepted by the API.",
      [](settings & s) -> auto& { return s.model.aliases; });
  more.allowed = check_served_name;
  more.maximum = 64;
  t.integer(
      "model.context_tokens", reload::restart, 16, 16 * mib,
      "Context length: tokens of prompt and answer together; auto: the model's own.",
      [](settings & s) -> auto& { return s.model.context_tokens; });
}

/// KV cache and types of numbers.
void add_numerics(table& t) {
  t.bytes(
      "kv.bytes", reload::live, mib, 64 * tib,
      "KV cache of one attention shard; auto: a share of the memory limit. A change moves the KV "
      "in use to new caches while requests run.",
      [](settings & s) -> auto& { return s.kv.bytes; });
  words<number_type> types{
      {number_type::f16, "f16"}, {number_type::f32, "f32"}, {number_type::bf16, "bf16"}};
  auto cached = types;
  cached.push_back({number_type::q8, "q8"});
  cached.push_back({number_type::q4, "q4"});
  t.choice<number_type>(
      "kv.dtype", reload::restart, cached,
      "Element type of the KV cache; q8: a byte per element and a scale per head; q4: half a byte "
      "per element, and a scale and a least value per 32.",
      [](settings & s) -> auto& { return s.kv.dtype; });
  t.seconds(
      "kv.prefix_cache_seconds", reload::restart, 0, 7 * 86'400 * second,
      "Seconds that unused KV stays in the prefix cache; 0 disables it.",
      [](settings & s) -> auto& { return s.kv.prefix_cache; });
  t.choice<operator_set>(
      "numerics.operators", reload::restart,
      {{operator_set::automatic, "auto"},
       {operator_set::reference, "reference"},
       {operator_set::portable, "portable"},
       {operator_set::avx2, "avx2"},
       {operator_set::avx512, "avx512"},
       {operator_set::amx, "amx"}},
      "Kernel set of the host device; auto: the fastest this processor supports.",
      [](settings & s) -> auto& { return s.numerics.operators; });
  t.choice<number_type>(
      "numerics.wire", reload::restart, types,
      "Type that Q, K, V and attention output are rounded to for transfer between devices.",
      [](settings & s) -> auto& { return s.numerics.wire; });
}

/// The data plane.
void add_net(table& t) {
  t.choice<transport>(
      "net.transport", reload::restart,
      {{transport::automatic, "auto"},
       {transport::in_process, "in_process"},
       {transport::shm, "shm"},
       {transport::tcp, "tcp"},
       {transport::verbs_staged, "verbs_staged"},
       {transport::verbs_gpudirect, "verbs_gpudirect"},
       {transport::mlx5_proxy, "mlx5_proxy"},
       {transport::fhbn, "fhbn"}},
      "Transport between replicas and shards; auto: the fastest that works of shared memory on one "
      "host, RDMA and TCP.",
      [](settings & s) -> auto& { return s.net.transport; });
  t.plain(
      "net.listen", option_kind::address, reload::restart,
      "Data plane address of this host's workers for other hosts; with 0.0.0.0 (IPv4) or [::] "
      "(both), peers use the address by which they reach control.listen.",
      [](settings & s) -> auto& { return s.net.listen; });
}

void add_control(table& t) {
  t.plain(
      "control.listen", option_kind::address, reload::restart,
      "Address where worker processes join; beyond loopback, mutual TLS is required.",
      [](settings & s) -> auto& { return s.control.listen; });
  t.plain(
      "control.secret_file", option_kind::path, reload::restart,
      "File with the secret shared with workers; one per line, two during rotation.",
      [](settings & s) -> auto& { return s.control.secret_file; });
  t.plain(
      "control.tls_certificate", option_kind::path, reload::restart,
      "Certificate (PEM) presented to workers.",
      [](settings & s) -> auto& { return s.control.tls_certificate; });
  t.plain(
      "control.tls_key", option_kind::path, reload::restart,
      "Private key (PEM) of the certificate.",
      [](settings & s) -> auto& { return s.control.tls_key; });
  t.plain(
      "control.tls_ca", option_kind::path, reload::restart,
      "Certificate authority (PEM) that workers' certificates are verified against.",
      [](settings & s) -> auto& { return s.control.tls_ca; });
  t.seconds(
      "control.heartbeat_seconds", reload::restart, 10, 60 * second,
      "Time between heartbeats; must be the same in all processes.",
      [](settings & s) -> auto& { return s.control.heartbeat; });
  t.seconds(
      "control.dead_seconds", reload::restart, second / 10, 600 * second,
      "Time without a heartbeat after which a process is declared dead; probes of its data plane "
      "may fail for a tenth of that, at least 0.3 s.",
      [](settings & s) -> auto& { return s.control.dead; });
}

void add_limits(table& t) {
  const auto count = [&](const char* name, uint64_t minimum, uint64_t maximum, const char* sentence,
                         auto field) {
    t.integer(std::string{"limits."} + name, reload::live, minimum, maximum, sentence, field);
  };
  count(
      "max_n", 1, 128, "Maximum choices (n) of one prompt; never more than batching.max_batch.",
      [](settings & s) -> auto& { return s.limits.max_n; });
  t.seconds(
      "limits.request_deadline_seconds", reload::live, second, 86'400 * second,
      "Deadline of a request; it is ended then, finished or not.",
      [](settings & s) -> auto& { return s.limits.request_deadline; });
  count(
      "queue_requests", 1, 1'000'000, "Maximum waiting requests; more are rejected with 429.",
      [](settings & s) -> auto& { return s.limits.queue_requests; });
  count(
      "queue_tokens", 1, 1'000'000'000, "Maximum prompt tokens of all waiting requests.",
      [](settings & s) -> auto& { return s.limits.queue_tokens; });
  count(
      "prompt_tokens", 1, 16 * mib, "Longest prompt; auto: what fits in the context.",
      [](settings & s) -> auto& { return s.limits.prompt_tokens; });
  count(
      "default_output_tokens", 1, 16 * mib,
      "Default max_tokens of a chat request, at most what fits in the context; for completions it "
      "is 16.",
      [](settings & s) -> auto& { return s.limits.default_output_tokens; });
  count(
      "tokens_per_request", 1, 16 * mib, "Maximum of n (or best_of) x prompts x max_tokens.",
      [](settings & s) -> auto& { return s.limits.tokens_per_request; });
  t.bytes(
      "limits.bodies_bytes", reload::live, mib, tib,
      "Memory of a listener's request bodies being received or parsed, and as much again of its "
      "whole answers that wait for their readers; more are rejected with 503; auto: four of "
      "http.max_body_bytes, at least 256 MiB.",
      [](settings & s) -> auto& { return s.limits.bodies_bytes; });
  count(
      "messages_per_chat", 1, 65'536, "Maximum messages in one chat request.",
      [](settings & s) -> auto& { return s.limits.messages_per_chat; });
  count(
      "prompts_per_request", 1, 1024, "Maximum prompts of a completion; times n at most 1024.",
      [](settings & s) -> auto& { return s.limits.prompts_per_request; });
  count(
      "best_of", 1, 128, "Maximum best_of of a completion request.",
      [](settings & s) -> auto& { return s.limits.best_of; });
  count(
      "top_logprobs", 0, 20, "Maximum top_logprobs (chat) or logprobs (completions).",
      [](settings & s) -> auto& { return s.limits.top_logprobs; });
  count(
      "prompt_logprobs", 0, 4'194'304, "Maximum log probabilities of a request's prompts; 0: none.",
      [](settings & s) -> auto& { return s.limits.prompt_logprobs; });
  count(
      "logit_bias_entries", 0, 65'536, "Maximum entries of logit_bias.",
      [](settings & s) -> auto& { return s.limits.logit_bias_entries; });
  count(
      "stop_strings", 0, 16, "Maximum stop strings of one request.",
      [](settings & s) -> auto& { return s.limits.stop_strings; });
  count(
      "stop_string_bytes", 1, 4096, "Maximum bytes of one stop string.",
      [](settings & s) -> auto& { return s.limits.stop_string_bytes; });
}

void add_operations(table& t) {
  t.seconds(
      "shutdown.drain_seconds", reload::live, 0, 86'400 * second,
      "Time for running requests to finish, and for clients to take their answers, after SIGTERM.",
      [](settings & s) -> auto& { return s.shutdown.drain; });
  t.seconds(
      "health.iteration_max_age_seconds", reload::live, second / 10, 3600 * second,
      "Age of the last iteration beyond which /ready returns 503.",
      [](settings & s) -> auto& { return s.health.iteration_max_age; });
  t.seconds(
      "recovery.max_pause_seconds", reload::live, second / 10, 3600 * second,
      "Stall of a stream beyond which new requests are rejected and an alarm is raised; running "
      "ones go on.",
      [](settings & s) -> auto& { return s.recovery.max_pause; });
  t.integer(
      "recovery.decode_percent", reload::restart, 1, 100,
      "Share of compute for decoding while lost KV is recomputed on the same devices; 100: no "
      "limit.",
      [](settings & s) -> auto& { return s.recovery.decode_percent; });
  t.integer(
      "recovery.rebuild_percent", reload::restart, 1, 99,
      "Share of a prefill iteration for recomputing lost KV while new prompts wait.",
      [](settings & s) -> auto& { return s.recovery.rebuild_percent; });
  t.integer(
      "recovery.parity_percent", reload::restart, 1, 100,
      "Share of the time for rebuilding the parity of a lost worker, in the gaps of decoding.",
      [](settings & s) -> auto& { return s.recovery.parity_percent; });
  t.bytes(
      "recovery.scrub_bytes", reload::restart, 0, tib,
      "KV per second that each shard checks against its parity, in the gaps of decoding; 0 "
      "disables "
      "the check.",
      [](settings & s) -> auto& { return s.recovery.scrub_bytes; });
  t.plain(
      "chaos.enabled", option_kind::boolean, reload::restart,
      "Allows `lamella chaos` to inject faults into workers of this server.",
      [](settings & s) -> auto& { return s.chaos.enabled; });
  t.plain(
      "api.strict", option_kind::boolean, reload::live,
      "Rejects unknown request fields, at any depth, with 400 instead of counting them.",
      [](settings & s) -> auto& { return s.api.strict; });
}

std::vector<option> make_table() {
  table t;
  add_listeners(t);
  add_responses(t);
  add_admin(t);
  add_model(t);
  add_pools(t);
  add_autoscale(t);
  add_numerics(t);
  add_batching(t);
  add_net(t);
  add_control(t);
  add_limits(t);
  add_operations(t);
  add_observing(t);
  return t.take();
}

} // namespace

std::span<const option> options() {
  static const auto all = make_table();
  return all;
}

} // namespace lamella::config
