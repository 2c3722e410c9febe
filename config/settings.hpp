/// Every option of Lamella as plain values. The tables in options.cpp, options_pools.cpp,
/// options_batching.cpp and options_observing.cpp give each one its key, sentence, bounds and
/// reload rule; the initialisers here are the defaults.
#pragma once

#include "config/device_option.hpp"
#include "config/named_list.hpp"

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace lamella::config {

using std::chrono::milliseconds;

/// Where the members of a pool live: actors of this process, child processes, other hosts.
enum class placement : uint8_t { in_process, local, remote };

/// How an attention pool is cut: KV heads of every request, or whole requests per member.
enum class partition : uint8_t { heads, requests };

/// Where prefill attention runs: on the prefill worker's own KV, which the shards pull, or on the
/// shards. `automatic`: its own where prefill workers are processes on host devices with one rank
/// each, and no cell has parity.
enum class prefill_attention : uint8_t { automatic, own, shards };

/// In which order waiting prompts are computed: scheduler/prefill_plan.hpp.
enum class prompt_order : uint8_t { fcfs, fair };

/// Element type of KV rows, and of values that cross from replica to shard. `q8` has one
/// byte per element and one scale per head, `q4` half a byte per element and a scale and a least
/// value per 32 elements; only KV rows can have them.
enum class number_type : uint8_t { f16, f32, bf16, q8, q4 };

/// Kernel set of the host device. `automatic`: the fastest one that this processor supports.
enum class operator_set : uint8_t { automatic, reference, portable, avx2, avx512, amx };

/// Which replica runs which batch: j mod R always (V-M06), or the next one with each slice (L-M17).
/// `off`: one batch for each replica, so that none overlap; `automatic`: that or rotational
/// (V-M17).
enum class pipeline : uint8_t { fixed, rotational, off, automatic };

/// Whether prompts on replicas that decode have launches of their own, or share those of a batch.
enum class launches : uint8_t { separate, mixed };

/// Data plane tier. `automatic` probes at connect time.
enum class transport : uint8_t {
  automatic,
  in_process,
  shm,
  tcp,
  verbs_staged,
  verbs_gpudirect,
  mlx5_proxy,
  fhbn
};

enum class log_level : uint8_t { error, warn, info, debug, trace };

/// `automatic` is text on a terminal and JSON elsewhere.
enum class log_format : uint8_t { automatic, text, json };

/// The public listener.
struct http_settings {
  std::string listen = "127.0.0.1:8000";
  std::filesystem::path api_keys_file;   ///< empty: no keys, loopback only
  std::filesystem::path tls_certificate; ///< chain in PEM: HTTPS; empty: plain HTTP
  std::filesystem::path tls_key;         ///< of the certificate
  bool https() const { return !tls_certificate.empty(); }
  std::vector<std::string> cors_origins; ///< whose pages may read answers; "*": everybody's
  uint64_t max_body_bytes = 16 << 20;
  milliseconds sse_ping{15'000}; ///< `sse_ping_seconds`; 0 turns it off
  uint64_t stream_buffer_bytes = 1 << 20;
  milliseconds stream_stall{60'000}; ///< `stream_stall_seconds`
  uint32_t connections_max = 12'000;
  uint32_t connections_per_address_max = 512;
  bool probes = true; ///< /live /ready /health /metrics on the public listener too
  bool ui = true;     ///< a chat page for browsers at / of the public listener
  milliseconds responses_keep{600'000}; ///< `responses_keep_seconds`; 0: none are kept
  uint64_t responses_bytes = 64 << 20;  ///< of all that are kept
};

/// The admin listener: console, status, metrics, events, traces, reload, scale, drain, chaos.
struct admin_settings {
  std::string listen = "127.0.0.1:8001";
  std::filesystem::path api_keys_file;
};

struct model_settings {
  std::filesystem::path path; ///< empty: the default model in the user's cache
  std::string name;           ///< served name; empty: taken from the file
  std::vector<std::string> aliases;
  std::optional<uint32_t> context_tokens; ///< nothing: what the model file says
};

/// Options common to all kinds of pools.
struct pool_settings {
  uint32_t members = 1;
  uint32_t least = 1, most = 0; ///< `min` and `max` of the autoscaler; no max: it leaves the pool
  config::placement placement = placement::in_process;
  std::string device = "auto"; ///< auto, host or cuda:N
  uint32_t spares = 0;
  std::optional<uint32_t> threads; ///< per member; nothing: the processors are shared out

  bool autoscaled() const { return most > 0; }
};

struct model_pool_settings : pool_settings {
  uint32_t tensor_parallel = 1; ///< devices per replica
};

struct prefill_pool_settings : pool_settings {
  prefill_attention attention = prefill_attention::automatic;
  std::optional<uint64_t> kv_bytes; ///< of a worker's own KV; nothing: room for a few prompts
  uint32_t serialize_below_tokens =
      512; ///< KV of shorter prompts is transferred in one piece after prefill
  /// Prompts beyond so many tokens that wait for each worker run on replicas that decode; 0: none.
  uint32_t overflow_tokens = 8192;
  milliseconds repurpose{0}; ///< `repurpose_seconds`: mixed for so long, changes its pool; 0: never

  /// Whether prompts run on seats of their own; else on the model replicas.
  bool has_seats() const {
    return attention == prefill_attention::own || placement != placement::in_process;
  }
};

struct attention_pool_settings : pool_settings {
  config::partition partition = partition::heads;
  bool parity = false;              ///< adds a member with the parity of the others
  std::optional<uint64_t> kv_bytes; ///< per member; nothing: `kv.bytes`
};

/// The attention pools. Each cell starts as a copy of the surrounding options.
struct attention_pools_settings : attention_pool_settings {
  /// By number: in order of names as configured, behind them those that came by a reload. May be
  /// empty.
  named_list<attention_pool_settings> cells;

  /// The pools to build: `cells`, or one named `main` where there are none.
  named_list<attention_pool_settings> resolved() const;
  /// Members of all cells, or of the one pool.
  uint32_t all_members() const;
  /// Beginning of the keys of one of resolved(): "pools.attention", "pools.attention.cells.far".
  std::string key_of(const std::string& name) const;
  /// The first cell with the same device, placement and threads as that one, whose workers can
  /// replace each other; empty: they are those of the options around the cells.
  std::string seats_of(const std::string& cell) const;
  /// Whether a cell, or the pool without cells, has that placement.
  bool any(config::placement where) const;
  /// Whether it has a CUDA device, likewise.
  bool any_cuda() const;
  /// Whether it has parity, likewise.
  bool any_parity() const;
};

struct pools_settings {
  model_pool_settings model;
  attention_pools_settings attention;
  prefill_pool_settings prefill;

  /// Whether prefill workers run attention on KV of their own, which the shards pull. On CUDA
  /// devices, and where a pool has parity, only if configured: KV sent to the shards has parity at
  /// once, pulled KV only after a rebuild.
  bool prefill_owns_kv() const {
    return prefill.attention == prefill_attention::own
           || (prefill.attention == prefill_attention::automatic
               && prefill.placement != placement::in_process && !attention.any_parity()
               && model.tensor_parallel == 1 && !is_cuda(prefill.device));
  }

  /// Whether prefill shares processors with batches: on the model replicas, or on one machine.
  bool prefill_beside_decode() const {
    return !prefill.has_seats()
           || (prefill.placement != placement::remote && model.placement != placement::remote);
  }

  /// Does any pool live there?
  bool any(config::placement where) const {
    return model.placement == where || attention.any(where) || prefill.placement == where;
  }
  /// Does the size of any pool follow the load?
  bool autoscaled() const {
    return model.autoscaled() || attention.autoscaled() || prefill.autoscaled();
  }
  /// Is there anything but this process?
  bool distributed() const { return any(placement::local) || any(placement::remote); }
};

struct kv_settings {
  std::optional<uint64_t> bytes; ///< per attention member; nothing: a share of the memory limit
  number_type dtype = number_type::f16;
  milliseconds prefix_cache{600'000}; ///< `prefix_cache_seconds`
};

struct numerics_settings {
  operator_set operators = operator_set::automatic;
  number_type wire = number_type::f16;
};

struct batching_settings {
  config::pipeline pipeline = pipeline::fixed;
  std::optional<uint32_t> batches; ///< nothing: as many as replicas; if they may rotate: one more
  uint32_t max_batch = 64;         ///< requests per batch
  uint32_t prefill_chunk_tokens = 512;
  milliseconds prefill_iteration{60}; ///< `prefill_iteration_seconds`: its longest; 0: no bound
  config::launches launches = launches::separate;
  bool early_q = true;         ///< Q is sent before K and V are computed
  uint32_t mini_batches = 1;   ///< of a shard's rows in an iteration, at most
  milliseconds tbt_target{60}; ///< `tbt_target_seconds`: of a mixed launch; 0: no bound
  uint32_t stand_backs = 0;    ///< of a sequence, for prompts in mixed launches
  config::prompt_order prompt_order = prompt_order::fair;

  /// Batches for this number of model replicas; at most so many where they are chosen.
  uint32_t batches_for(uint32_t replicas) const {
    const bool more = pipeline == pipeline::rotational || pipeline == pipeline::automatic;
    return batches.value_or(replicas + (more ? 1 : 0));
  }
  /// Whether some of these replicas would never have a batch.
  bool leaves_idle(uint32_t replicas) const { return batches_for(replicas) < replicas; }
};

/// Where worker processes join, and what both sides must agree on.
struct control_settings {
  std::string listen = "127.0.0.1:0"; ///< port 0: any; only local children can know it
  std::filesystem::path secret_file;  ///< empty: a fresh secret, for local children alone
  std::filesystem::path tls_certificate, tls_key, tls_ca;
  milliseconds heartbeat{100}; ///< `heartbeat_seconds`
  milliseconds dead{1000};     ///< `dead_seconds`: heartbeat timeout

  bool tls() const { return !tls_certificate.empty() && !tls_key.empty() && !tls_ca.empty(); }
};

struct net_settings {
  config::transport transport = transport::automatic;
  std::string listen = "127.0.0.1:0"; ///< of this process's own seats, for workers of other hosts
};

/// Limits of one request and of the queue.
struct limits_settings {
  uint32_t max_n = 128;
  milliseconds request_deadline{600'000}; ///< `request_deadline_seconds`
  uint32_t queue_requests = 512;
  uint64_t queue_tokens = 2'000'000;
  std::optional<uint32_t> prompt_tokens; ///< nothing: what the context has room for
  uint32_t default_output_tokens = 4096;
  uint32_t tokens_per_request = 65'536; ///< n x prompts x max_tokens
  std::optional<uint64_t> bodies_bytes; ///< nothing: four of the largest, at least 256 MiB
  uint32_t messages_per_chat = 2048;
  uint32_t prompts_per_request = 128;
  uint32_t best_of = 20;
  uint32_t top_logprobs = 20;
  uint32_t prompt_logprobs = 262'144;
  uint32_t logit_bias_entries = 300;
  uint32_t stop_strings = 16;
  uint32_t stop_string_bytes = 256;
};

struct shutdown_settings {
  milliseconds drain{45'000}; ///< `drain_seconds`
};

struct health_settings {
  milliseconds iteration_max_age{5'000}; ///< `iteration_max_age_seconds`
};

struct recovery_settings {
  milliseconds max_pause{
      2'000}; ///< `max_pause_seconds`; beyond it an alarm, never an aborted request
  uint32_t decode_percent = 20;    ///< of the time, during a rebuild on the same processors
  uint32_t rebuild_percent = 70;   ///< of a prefill iteration, while new prompts wait
  uint32_t parity_percent = 50;    ///< of the time, for rebuilding lost parity
  uint64_t scrub_bytes = 16 << 20; ///< of KV in a second, read at each member; 0: no checks
};

/// When pools with a `max` become larger or smaller (scheduler/scaling_look.hpp).
struct autoscale_settings {
  uint32_t kv_high_percent = 80;    ///< of the slots in use, above which there are too few
  uint32_t kv_low_percent = 50;     ///< below which there may be too many
  milliseconds cool_up{10'000};     ///< `cool_down_up_seconds`
  milliseconds cool_down{60'000};   ///< `cool_down_down_seconds`
  milliseconds tbt_target{0};       ///< `tbt_target_ms`, of the 99th percentile; 0: none
  milliseconds ttft_target{0};      ///< `ttft_target_ms`, likewise
  std::filesystem::path trace_file; ///< of what the autoscaler sees; empty: none
};

struct chaos_settings {
  bool enabled = false;
};

struct log_settings {
  log_level level = log_level::info;
  log_format format = log_format::automatic;
};

/// Spans of requests, for a collector of OpenTelemetry.
struct traces_settings {
  std::string endpoint;          ///< URL; empty: none are made
  uint32_t sample_percent = 100; ///< of requests that no client has traced
};

struct api_settings {
  bool strict = false; ///< unknown request fields are errors
};

/// All of them. A default-constructed value is a valid configuration.
struct settings {
  uint32_t version = 1;
  http_settings http;
  admin_settings admin;
  model_settings model;
  pools_settings pools;
  kv_settings kv;
  numerics_settings numerics;
  batching_settings batching;
  control_settings control;
  net_settings net;
  limits_settings limits;
  shutdown_settings shutdown;
  health_settings health;
  recovery_settings recovery;
  autoscale_settings autoscale;
  chaos_settings chaos;
  log_settings log;
  traces_settings traces;
  api_settings api;

  /// Memory of all requests' bodies together.
  uint64_t bodies_bytes() const {
    return limits.bodies_bytes.value_or(std::max<uint64_t>(4 * http.max_body_bytes, 256 << 20));
  }
};

/// A rule that spans keys and does not hold.
struct rule_violation {
  std::vector<std::string> keys; ///< the keys to look at, the one to change first
  std::string message;           ///< what is wrong, in the words of the configuration file
  std::string hint;              ///< what to do
};

/// Checks the rules between options (bounds of single options are checked while reading) and the
/// parts of the configuration language that this version cannot run yet. Returns every violation.
std::vector<rule_violation> check(const settings& x);

/// host and port of a `host:port` address; the host is a name, an IPv4 address or an IPv6 address
/// in brackets. Nothing when the text is none of these.
struct host_and_port {
  std::string host;
  uint16_t port = 0;
};
std::optional<host_and_port> parse_address(const std::string& text);

/// Why a text is no URL of a collector; empty for http://HOST[:PORT][/PATH], https:// and nothing.
std::string check_collector(const std::string& text);

/// Why a text is no device of a pool or a worker; empty for auto, host and cuda:N.
std::string check_device(const std::string& text);

/// True for `localhost`, 127.0.0.0/8 and ::1: addresses that other hosts cannot reach.
bool is_loopback(const std::string& host);

} // namespace lamella::config
