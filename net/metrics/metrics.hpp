/// All metrics of Lamella; the only code that uses the metrics library.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lamella::net {

/// How a request ended, for `lamella_requests_total{outcome}`.
enum class request_outcome : uint8_t { done, error, cancelled, rejected };

/// Why a choice or request ended, for `vllm:request_success_total{finished_reason}`.
enum class request_end : uint8_t { stop, length, abort };

/// A finished request. Times in seconds from one clock. Time to first token and token counts are
/// recorded when they happen, by first_token(), tokens_prompted() and tokens_generated().
struct request_times {
  double e2e = 0;     ///< arrival to last byte handed over
  double queue = 0;   ///< arrival to first scheduled
  double prefill = 0; ///< first scheduled to first token
  double decode = 0;  ///< first to last token
  double gaps = 0;    ///< between the tokens of a choice, of all choices together
  uint64_t gap_count = 0;
  uint64_t prompt_tokens = 0;
  uint64_t generated_tokens = 0; ///< over all choices
  uint32_t max_tokens = 0;
  uint32_t n = 1;
  request_end end = request_end::stop;
};

/// What the HTTP server counts: what is open now, and totals since the start.
struct http_totals {
  uint64_t connections = 0, requests_open = 0, answer_bytes = 0;
  uint64_t accepted = 0; ///< connections
  uint64_t refused = 0;  ///< of these, over the limits
  uint64_t errors = 0;   ///< given by the server itself
  uint64_t disconnects = 0, stalls = 0, answers_refused = 0;
};

/// Why admission rejected a request, for `lamella_admission_rejected_total{reason}`.
enum class rejection : uint8_t {
  queue_requests,
  queue_tokens,
  rate,
  draining,
  loading,
  no_capacity
};

/// Why a late or unexpected message was dropped (fenced), for `lamella_fenced_total{reason}`.
enum class fence : uint8_t {
  epoch,    ///< of another epoch
  attempt,  ///< of an aborted iteration
  position, ///< a token of another position than the next
};

/// Why a worker dropped a frame of the data plane, for `lamella_frames_dropped_total{reason}`.
enum class frame_fault : uint8_t {
  epoch,     ///< the frame or its seqno is of another epoch
  attempt,   ///< left over from an aborted iteration
  duplicate, ///< of the same attempt, received before
  damaged,   ///< its header or payload fails its checks; the link is closed
};
inline constexpr size_t frame_faults = 4;

/// Where KV was found to be corrupt, for `lamella_kv_integrity_failures_total{where}`.
enum class kv_damage : uint8_t {
  transfer, ///< pulled from a prefill worker: the digests of the two sides differ
  rest,     ///< in a worker's memory: a slot and its parity do not match
  rebuild,  ///< copied between members of a pool: the digests of the two sides differ
};

/// Cause of a failover, for `lamella_failovers_total{cause}`.
enum class failover_cause : uint8_t {
  exit,      ///< its process or actor has exited, not by its own fault as far as known
  timeout,   ///< it was stopped, or sent no heartbeats
  deadline,  ///< iterations timed out repeatedly without a reported cause
  partition, ///< a link between workers was cut, but no worker was lost
  integrity, ///< digests of received KV differ from those sent
  slow,      ///< slow (gray failure): a spare has its part
  fault,     ///< a device or an actor of it failed
  ordered,   ///< drained by an operator; `operator` in the metric
};

/// The KV slots of one attention worker, each in one state. `used` are held by a sequence, `parity`
/// are those of the worker with the parity that have it, and `orphan` are held for sequences that
/// have not resumed them since the last epoch started.
struct slot_counts {
  uint64_t free = 0, used = 0, cached = 0, parity = 0, orphan = 0;
};

/// State of a seat: empty, a worker that is loading, one that is ready to serve, or processes that
/// keep crashing before that.
enum class worker_condition : uint8_t { missing, loading, live, failing };

/// Where the time of an iteration went, for `lamella_iteration_seconds{stage}`: a replica computes
/// slices, a shard attention, and both wait for each other and for their turn.
enum class iteration_stage : uint8_t { slice, attention, combine, send, wait };
inline constexpr size_t iteration_stages = 5;

/// How a change of a pool's size ended, for `lamella_pool_changes_total{result}`.
enum class change_end : uint8_t { done, rolled_back, refused };

/// One registry with all families, present and 0 from the first scrape. All methods may be called
/// from any thread, cost well under a microsecond (set_* with a worker name: a map lookup), and
/// never block on a scrape for longer than the copy of one number.
class metrics {
public:
  /// A worker by role (model, attention, prefill) and stable name.
  struct worker_name {
    std::string role;
    std::string name;
  };
  struct settings {
    std::string model_name;
    uint64_t context_tokens = 8192; ///< upper end of the token count buckets
    std::string version;
    std::string commit;
    std::string caf;
    std::string simd;
    uint64_t slot_count = 0;          ///< of the KV pool, for vllm:cache_config_info
    uint32_t slot_block = 16;         ///< slots per allocation run, its block_size
    std::vector<worker_name> workers; ///< present at start-up; their series start at 0
  };
  explicit metrics(settings);
  ~metrics();
  metrics(const metrics&) = delete;
  metrics& operator=(const metrics&) = delete;

  // Requests.
  void request_finished(const request_times& times);
  /// `code` is the error code of the API, empty on success.
  void request_ended(request_outcome outcome, std::string_view code = {});
  void admission_rejected(rejection reason);
  /// Time to first token, in seconds after arrival; recorded at once, not at the end of the
  /// request.
  void first_token(double seconds);
  /// One gap between two tokens of a choice.
  void token_gap(double seconds);
  void tokens_prompted(uint64_t tokens);
  void tokens_generated(uint64_t tokens);
  void preempted();
  void prefix_cache(uint64_t queried_tokens, uint64_t hit_tokens);
  void set_requests(uint64_t running, uint64_t waiting);
  /// A prompt runs on a replica that decodes, because all prefill workers have long queues.
  void prompt_overflowed();
  /// So many sequences got KV slots at shards of their replica's host, or of others.
  void kv_placed(bool near, uint64_t sequences);
  /// So many sequences come to a machine for prompts, because all other batches are full.
  void sequences_overflowed(uint64_t sequences);
  /// So many sequences sit a launch out for prompts.
  void stood_back(uint64_t sequences);
  void set_mixed_replicas(uint64_t replicas);
  /// An unknown field. At most 64 names become labels; the rest count as "other".
  void unknown_param(std::string_view name);

  // HTTP. `handler` is a route name, never a raw path.
  void http_request(std::string_view handler, std::string_view method, int status, double seconds);

  // Iterations.
  void iteration(uint64_t tokens, uint64_t batch_size);
  void iteration_time(iteration_stage stage, double seconds);
  /// Several iterations: increments per bucket of base/time_histogram.hpp.
  void iteration_times(iteration_stage stage, const std::vector<uint64_t>& more, double seconds);
  /// How long iterations like the newest take, as measured: `work` is launch, attention or prompt
  /// attention, `cell` the attention cell, and `correction` measured over predicted. No number
  /// (NaN) where nothing is measured.
  void set_expected_time(std::string_view work, std::string_view cell, double seconds,
                         double correction);
  /// Whether that batch has an iteration in flight.
  void set_in_flight(uint32_t batch, bool in_flight);
  /// Busy time of the device of a worker since the last call; `lamella_role_busy_ratio` is computed
  /// from it at a scrape.
  void computed(std::string_view role, std::string_view worker, double seconds);

  /// K and V that a shard has pulled from a prefill worker, and how long that took.
  void kv_pulled(uint64_t bytes, double seconds);

  /// The KV slots of one attention worker; its usage ratio follows, and vllm:kv_cache_usage_perc as
  /// the highest of them.
  void set_kv_slots(std::string_view worker, const slot_counts& slots);
  /// Replaces the values of vllm:cache_config_info.
  void set_cache_config(uint64_t block_slots, uint64_t blocks);

  // The cluster.
  /// `lamella_worker_state`, and `lamella_worker_up`: 1 while it is live.
  void set_worker_state(std::string_view role, std::string_view worker, worker_condition now);
  /// Members of a pool (model, attention, prefill): those it has, and those the autoscaler wants.
  void set_pool_members(std::string_view pool, uint32_t members);
  void set_pool_wish(std::string_view pool, uint32_t members);
  /// Those it shall have: others than it has while a change is under way.
  void set_pool_target(std::string_view pool, uint32_t members);
  void pool_changed(std::string_view pool, change_end how);
  /// KV was copied to the shards of the next epoch, which has taken over.
  void kv_moved(uint64_t slots, uint64_t bytes, double seconds);
  /// It was being copied, and the change was given up.
  void kv_move_aborted();
  /// Nothing was launched for so long because an epoch took over.
  void launches_stopped(double seconds);
  void set_worker_slow(std::string_view role, std::string_view worker, bool slow);
  /// Time since the last message of the current or last worker in that seat.
  void set_heartbeat_age(std::string_view role, std::string_view worker, double seconds);
  /// Whether /ready returns 200.
  void set_ready(bool ready);
  /// Removes the series of a worker that left for good.
  void remove_worker(std::string_view role, std::string_view worker);
  /// A failover; once for each loss.
  void failover(std::string_view role, failover_cause cause);
  void request_lost(std::string_view role);
  void request_recovered(std::string_view method);
  /// Tokens of a sequence whose lost KV was recomputed.
  void kv_rebuilt(uint64_t tokens);
  /// Slots whose parity was checked against the shards' rows, and how many differed; each of those
  /// counts as corruption at rest.
  void parity_checked(uint64_t slots, uint64_t wrong);
  /// Slots whose parity was rebuilt from the shards' rows, because it was missing or wrong.
  void parity_rebuilt(uint64_t slots);
  void kv_damaged(kv_damage where);
  /// Positions whose KV digest was compared with that of an earlier epoch.
  void digests_compared(uint64_t positions);
  /// Unprotected tokens of a pool with parity.
  void set_parity_lag(std::string_view pool, uint64_t tokens);
  void request_poisoned();
  /// A recomputed token differed from the committed one.
  void diverged();
  void fenced(fence why);
  void frames_dropped(std::string_view role, frame_fault why, uint64_t frames);
  /// Requests paused by a loss, and whether one stalls for too long; raising the alarm is counted.
  void set_recovering(uint64_t requests, bool alarm);
  /// Bytes of lost KV that were rebuilt.
  void kv_remade_bytes(std::string_view method, uint64_t bytes);
  /// The rebuild is complete: its duration.
  void kv_remade(std::string_view method, double seconds);
  void recovery_pause(std::string_view role, std::string_view method, double seconds);
  void link_bytes(std::string_view peer_role, std::string_view transport, uint64_t bytes);
  /// Round trip between two workers, once per measurement.
  void link_rtt(std::string_view peer_role, std::string_view transport, double seconds);
  void set_mailbox_depth(std::string_view actor_class, uint64_t depth);
  void config_reloaded(bool ok);
  void set_http(const http_totals& now);
  /// Bytes of request bodies, and number of requests rejected for lack of room, since the start.
  void set_bodies(uint64_t bytes, uint64_t refused);
  /// Log lines dropped by a process; `role`: of a worker, or "control".
  void log_dropped(std::string_view role, uint64_t lines);

  // Traces of requests (net/tracing).
  void spans_exported(uint64_t spans);
  /// `reason`: queue, collector or stopped.
  void spans_dropped(std::string_view reason, uint64_t spans);
  /// A request came with a traceparent that cannot be read.
  void traceparent_malformed();

  /// Progress of a load phase: map, weights, join or warm; 0..1.
  void set_load_progress(std::string_view phase, double ratio);

  struct page {
    std::string content_type;
    std::string body;
  };
  /// All series: Prometheus text 0.0.4, or OpenMetrics 1.0 where `accept` asks for it. `now`: end
  /// of the interval of rates, which is from scrape to scrape and at least a second long.
  page scrape(std::string_view accept = {},
              std::chrono::steady_clock::time_point now = std::chrono::steady_clock::now()) const;
  /// Those samples alone, by name (`vllm:time_to_first_token_seconds_bucket`), as text 0.0.4
  /// without comments. Ends no interval of rates: they stay those between two scrapes.
  std::string samples(std::span<const std::string_view> names) const;

private:
  struct impl;
  std::unique_ptr<impl> impl_;
};

} // namespace lamella::net
