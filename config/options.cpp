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
    return "does not begin with a scheme in small letters, such as https://";
  const auto host = std::string_view{text}.substr(scheme + 3);
  if (host.empty()) return "has no host";
  if (host.find('/') != host.npos)
    return "has a path: an origin is scheme, host and port, without a / at the end";
  if (!within(host, "-._:[]")) return "has a capital letter or a character that no host has";
  return {};
}

void add_listeners(table& t) {
  t.plain(
      "http.listen", option_kind::address, reload::restart,
      "Address of the public API; beyond loopback it needs http.api_keys_file.",
      [](settings & s) -> auto& { return s.http.listen; });
  t.plain(
      "http.api_keys_file", option_kind::path, reload::live,
      "File with the API keys, one per line; # starts a comment.",
      [](settings & s) -> auto& { return s.http.api_keys_file; });
  t.plain(
      "http.tls_certificate", option_kind::path, reload::restart,
      "Certificate chain (PEM) of the public API, which speaks HTTPS then; read again on reload.",
      [](settings & s) -> auto& { return s.http.tls_certificate; });
  t.plain(
      "http.tls_key", option_kind::path, reload::restart,
      "Private key (PEM) of the certificate; read again on reload.",
      [](settings & s) -> auto& { return s.http.tls_key; });
  auto& origins = t.plain(
      "http.cors_origins", option_kind::text_list, reload::restart,
      "Origins whose web pages may use the API, such as https://chat.example.org; \"*\" for all.",
      [](settings & s) -> auto& { return s.http.cors_origins; });
  origins.allowed = check_origin;
  origins.maximum = 64;
  t.bytes(
      "http.max_body_bytes", reload::restart, kib, gib,
      "Largest request body that is read, within 30 seconds.",
      [](settings & s) -> auto& { return s.http.max_body_bytes; });
  t.seconds(
      "http.sse_ping_seconds", reload::restart, 0, 3600 * second,
      "Silence on a stream after which a keep-alive comment is sent; 0 sends none.",
      [](settings & s) -> auto& { return s.http.sse_ping; });
  t.bytes(
      "http.stream_buffer_bytes", reload::restart, 4 * kib, 64 * mib,
      "Rendered text kept for a slow reader before its request pauses.",
      [](settings & s) -> auto& { return s.http.stream_buffer_bytes; });
  t.seconds(
      "http.stream_stall_seconds", reload::restart, second, 3600 * second,
      "Time without a byte read after which a stream is cancelled.",
      [](settings & s) -> auto& { return s.http.stream_stall; });
  t.integer(
      "http.connections_max", reload::restart, 1, 1'000'000, "Open connections in total.",
      [](settings & s) -> auto& { return s.http.connections_max; });
  t.integer(
      "http.connections_per_address_max", reload::restart, 1, 1'000'000,
      "Open connections from one client address.",
      [](settings & s) -> auto& { return s.http.connections_per_address_max; });
  t.plain(
      "http.probes", option_kind::boolean, reload::restart,
      "Answers /live, /ready, /health and /metrics on the public listener too.",
      [](settings & s) -> auto& { return s.http.probes; });
  t.plain(
      "admin.listen", option_kind::address, reload::restart,
      "Address of the operators' listener; beyond loopback it needs admin.api_keys_file.",
      [](settings & s) -> auto& { return s.admin.listen; });
  t.plain(
      "admin.api_keys_file", option_kind::path, reload::live,
      "File with the keys of the operators' listener.",
      [](settings & s) -> auto& { return s.admin.api_keys_file; });
}

void add_model(table& t) {
  t.plain(
      "model.path", option_kind::path, reload::restart,
      "GGUF file or Hugging Face directory; empty takes the default model that "
      "`lamella model fetch` keeps.",
      [](settings & s) -> auto& { return s.model.path; });
  auto& name = t.plain(
      "model.name", option_kind::text, reload::restart,
      "Name clients ask for; empty takes the name of the model's file or directory.",
      [](settings & s) -> auto& { return s.model.name; });
  name.allowed = check_served_name;
  name.maximum = 256;
  auto& more = t.plain(
      "model.aliases", option_kind::text_list, reload::restart,
      "Further names clients may use for the model.",
      [](settings & s) -> auto& { return s.model.aliases; });
  more.allowed = check_served_name;
  more.maximum = 64;
  t.integer(
      "model.context_tokens", reload::restart, 16, 16 * mib,
      "Tokens of prompt and answer together; auto takes what the model was made for.",
      [](settings & s) -> auto& { return s.model.context_tokens; });
}

void add_engine(table& t) {
  t.bytes(
      "kv.bytes", reload::restart, mib, 64 * tib,
      "KV cache of one attention member; auto takes a share of the memory limit.",
      [](settings & s) -> auto& { return s.kv.bytes; });
  words<number_type> types{
      {number_type::f16, "f16"}, {number_type::f32, "f32"}, {number_type::bf16, "bf16"}};
  auto cached = types;
  cached.push_back({number_type::q8, "q8"});
  t.choice<number_type>(
      "kv.dtype", reload::restart, cached,
      "Element type of the KV cache; q8 takes a byte per element and a scale per head.",
      [](settings & s) -> auto& { return s.kv.dtype; });
  t.seconds(
      "kv.prefix_cache_seconds", reload::restart, 0, 7 * 86'400 * second,
      "How long the KV of what nobody uses is kept for prompts that begin alike; 0: not at all.",
      [](settings & s) -> auto& { return s.kv.prefix_cache; });
  t.choice<operator_set>(
      "numerics.operators", reload::restart,
      {{operator_set::automatic, "auto"},
       {operator_set::reference, "reference"},
       {operator_set::portable, "portable"},
       {operator_set::avx2, "avx2"},
       {operator_set::avx512, "avx512"}},
      "Kernels of the host device; auto takes the best this processor can run.",
      [](settings & s) -> auto& { return s.numerics.operators; });
  t.choice<number_type>(
      "numerics.wire", reload::restart, types,
      "Type that Q, K, V and attention output are rounded to between devices.",
      [](settings & s) -> auto& { return s.numerics.wire; });
  t.choice<pipeline>(
      "batching.pipeline", reload::restart,
      {{pipeline::fixed, "fixed"}, {pipeline::rotational, "rotational"}},
      "Whether a batch stays on its replica or moves on with every slice.",
      [](settings & s) -> auto& { return s.batching.pipeline; });
  t.integer(
      "batching.batches", reload::restart, 1, 64,
      "Batches that run at the same time; auto takes the number of replicas.",
      [](settings & s) -> auto& { return s.batching.batches; });
  t.integer(
      "batching.max_batch", reload::restart, 1, 4096, "Requests in one batch.",
      [](settings & s) -> auto& { return s.batching.max_batch; });
  t.integer(
      "batching.prefill_chunk_tokens", reload::restart, 16, 65'536,
      "Prompt tokens computed in one piece, so that long prompts do not hold up the others.",
      [](settings & s) -> auto& { return s.batching.prefill_chunk_tokens; });
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
      "Data plane between replicas and shards; auto takes the fastest that works: shared memory "
      "on one host, RDMA adapters that reach each other, TCP.",
      [](settings & s) -> auto& { return s.net.transport; });
  t.plain(
      "net.listen", option_kind::address, reload::restart,
      "Data plane of this host's seats for other hosts; 0.0.0.0 (IPv4), [::] (both): others take "
      "the address by which they reach control.listen.",
      [](settings & s) -> auto& { return s.net.listen; });
}

void add_control(table& t) {
  t.plain(
      "control.listen", option_kind::address, reload::restart,
      "Where worker processes join; beyond loopback it needs mutual TLS.",
      [](settings & s) -> auto& { return s.control.listen; });
  t.plain(
      "control.secret_file", option_kind::path, reload::restart,
      "File with the secret that workers must know; one per line, two while it is replaced.",
      [](settings & s) -> auto& { return s.control.secret_file; });
  t.plain(
      "control.tls_certificate", option_kind::path, reload::restart,
      "Certificate (PEM) shown to workers.",
      [](settings & s) -> auto& { return s.control.tls_certificate; });
  t.plain(
      "control.tls_key", option_kind::path, reload::restart,
      "Private key (PEM) of the certificate.",
      [](settings & s) -> auto& { return s.control.tls_key; });
  t.plain(
      "control.tls_ca", option_kind::path, reload::restart,
      "Certificate authority (PEM) that must have signed the workers' certificates.",
      [](settings & s) -> auto& { return s.control.tls_ca; });
  t.seconds(
      "control.heartbeat_seconds", reload::restart, 10, 60 * second,
      "Time between heartbeats, the same for all processes.",
      [](settings & s) -> auto& { return s.control.heartbeat; });
  t.seconds(
      "control.dead_seconds", reload::restart, second / 10, 600 * second,
      "Silence after which a process is taken for dead.",
      [](settings & s) -> auto& { return s.control.dead; });
}

void add_limits(table& t) {
  const auto count = [&](const char* name, uint64_t minimum, uint64_t maximum, const char* sentence,
                         auto field) {
    t.integer(std::string{"limits."} + name, reload::live, minimum, maximum, sentence, field);
  };
  count(
      "max_n", 1, 128, "Choices (n) one request may ask for.",
      [](settings & s) -> auto& { return s.limits.max_n; });
  t.seconds(
      "limits.request_deadline_seconds", reload::live, second, 86'400 * second,
      "Time after which a request ends, finished or not.",
      [](settings & s) -> auto& { return s.limits.request_deadline; });
  count(
      "queue_requests", 1, 1'000'000, "Requests that may wait; more are refused with 429.",
      [](settings & s) -> auto& { return s.limits.queue_requests; });
  count(
      "queue_tokens", 1, 1'000'000'000, "Prompt tokens that may wait in total.",
      [](settings & s) -> auto& { return s.limits.queue_tokens; });
  count(
      "prompt_tokens", 1, 16 * mib, "Longest prompt; auto takes what the context has room for.",
      [](settings & s) -> auto& { return s.limits.prompt_tokens; });
  count(
      "default_output_tokens", 1, 16 * mib,
      "Length of a chat answer when the request does not say, at most what fits in the context; "
      "completions have 16 then.",
      [](settings & s) -> auto& { return s.limits.default_output_tokens; });
  count(
      "tokens_per_request", 1, 16 * mib, "Most of n x prompts x max_tokens.",
      [](settings & s) -> auto& { return s.limits.tokens_per_request; });
  t.bytes(
      "limits.bodies_bytes", reload::live, mib, tib,
      "Memory of all request bodies that are received or wait to be read; more are refused with "
      "503. auto takes four of http.max_body_bytes, at least 256 MiB.",
      [](settings & s) -> auto& { return s.limits.bodies_bytes; });
  count(
      "messages_per_chat", 1, 65'536, "Messages in one chat request.",
      [](settings & s) -> auto& { return s.limits.messages_per_chat; });
  count(
      "prompts_per_request", 1, 1024, "Prompts in one completion request.",
      [](settings & s) -> auto& { return s.limits.prompts_per_request; });
  count(
      "best_of", 1, 128, "Most of best_of in a completion request.",
      [](settings & s) -> auto& { return s.limits.best_of; });
  count(
      "top_logprobs", 0, 20, "Alternatives to a token (top_logprobs, logprobs of completions).",
      [](settings & s) -> auto& { return s.limits.top_logprobs; });
  count(
      "logit_bias_entries", 0, 65'536, "Entries of logit_bias.",
      [](settings & s) -> auto& { return s.limits.logit_bias_entries; });
  count(
      "stop_strings", 0, 16, "Stop strings of one request.",
      [](settings & s) -> auto& { return s.limits.stop_strings; });
  count(
      "stop_string_bytes", 1, 4096, "Bytes of one stop string.",
      [](settings & s) -> auto& { return s.limits.stop_string_bytes; });
}

void add_operations(table& t) {
  t.seconds(
      "shutdown.drain_seconds", reload::live, 0, 86'400 * second,
      "Time running requests get to finish after TERM.",
      [](settings & s) -> auto& { return s.shutdown.drain; });
  t.seconds(
      "health.iteration_max_age_seconds", reload::live, second / 10, 3600 * second,
      "Age of the last iteration at which /ready turns to 503.",
      [](settings & s) -> auto& { return s.health.iteration_max_age; });
  t.seconds(
      "recovery.max_pause_seconds", reload::live, second / 10, 3600 * second,
      "A longer pause of a stream raises an alarm and refuses new requests; it ends none.",
      [](settings & s) -> auto& { return s.recovery.max_pause; });
  t.integer(
      "recovery.decode_percent", reload::restart, 1, 100,
      "Share of the time in which requests that are back decode while the KV of others, lost with "
      "a "
      "shard, is computed again on the same processors; 100 lets both compete.",
      [](settings & s) -> auto& { return s.recovery.decode_percent; });
  t.integer(
      "recovery.rebuild_percent", reload::restart, 1, 99,
      "Share of a prefill iteration for KV that is computed again while new prompts wait.",
      [](settings & s) -> auto& { return s.recovery.rebuild_percent; });
  t.integer(
      "recovery.parity_percent", reload::restart, 1, 100,
      "Share of the time in which the parity that a lost worker had is made again, in the gaps of "
      "decoding.",
      [](settings & s) -> auto& { return s.recovery.parity_percent; });
  t.bytes(
      "recovery.scrub_bytes", reload::restart, 0, tib,
      "KV that each member of a pool with parity reads in a second, in the gaps of decoding, to "
      "see "
      "whether the parity is right; 0 checks nothing.",
      [](settings & s) -> auto& { return s.recovery.scrub_bytes; });
  t.plain(
      "chaos.enabled", option_kind::boolean, reload::restart,
      "Allows `lamella chaos` to injure workers of this server.",
      [](settings & s) -> auto& { return s.chaos.enabled; });
  t.choice<log_level>(
      "log.level", reload::live,
      {{log_level::error, "error"},
       {log_level::warn, "warn"},
       {log_level::info, "info"},
       {log_level::debug, "debug"},
       {log_level::trace, "trace"}},
      "Least severe lines that are logged.", [](settings & s) -> auto& { return s.log.level; });
  t.choice<log_format>(
      "log.format", reload::restart,
      {{log_format::automatic, "auto"}, {log_format::text, "text"}, {log_format::json, "json"}},
      "Form of log lines; auto is text on a terminal and json elsewhere.",
      [](settings & s) -> auto& { return s.log.format; });
  t.plain(
      "api.strict", option_kind::boolean, reload::live,
      "Answers unknown request fields, at any depth, with 400 instead of counting them.",
      [](settings & s) -> auto& { return s.api.strict; });
}

std::vector<option> make_table() {
  table t;
  add_listeners(t);
  add_model(t);
  add_pools(t);
  add_engine(t);
  add_control(t);
  add_limits(t);
  add_operations(t);
  return t.take();
}

} // namespace

std::span<const option> options() {
  static const auto all = make_table();
  return all;
}

} // namespace lamella::config
