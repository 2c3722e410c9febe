/// Every number that Lamella publishes, and nothing else knows the metrics library.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace lamella::net {

/// How a request ended, for `lamella_requests_total{outcome}`.
enum class request_outcome : uint8_t { done, error, cancelled, rejected };

/// Why a choice or request ended, for `vllm:request_success_total{finished_reason}`.
enum class request_end : uint8_t { stop, length, abort };

/// A finished request. Times in seconds from one clock. Time to first token and token counts are
/// told when they happen, by first_token(), tokens_prompted() and tokens_generated().
struct request_times {
  double e2e = 0;     ///< arrival to last byte handed over
  double queue = 0;   ///< arrival to first scheduled
  double prefill = 0; ///< first scheduled to first token
  double decode = 0;  ///< first to last token
  uint64_t prompt_tokens = 0;
  uint64_t generated_tokens = 0; ///< over all choices
  uint32_t max_tokens = 0;
  uint32_t n = 1;
  request_end end = request_end::stop;
};

/// Why admission said no, for `lamella_admission_rejected_total{reason}`.
enum class rejection : uint8_t { queue_requests, queue_tokens, rate, draining, loading };

enum class slot_state : uint8_t { free, used, cached, parity, orphan };

/// Where the time of an iteration went, for `lamella_iteration_seconds{stage}`.
enum class iteration_stage : uint8_t { slice, attention, combine, send, wait };

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
    std::vector<worker_name> workers; ///< who is there at the start; their series begin at 0
  };
  explicit metrics(settings);
  ~metrics();
  metrics(const metrics&) = delete;
  metrics& operator=(const metrics&) = delete;

  // Requests.
  void request_finished(const request_times& times);
  /// `code` is the error code of the API, empty where it ended well.
  void request_ended(request_outcome outcome, std::string_view code = {});
  void admission_rejected(rejection reason);
  /// When the first token came, in seconds after arrival; at once, not at the end of the request.
  void first_token(double seconds);
  /// One gap between two tokens of a choice.
  void token_gap(double seconds);
  void tokens_prompted(uint64_t tokens);
  void tokens_generated(uint64_t tokens);
  void preempted();
  void prefix_cache(uint64_t queried_tokens, uint64_t hit_tokens);
  void set_requests(uint64_t running, uint64_t waiting);
  /// A field nobody knows. At most 64 names become labels; the rest count as "other".
  void unknown_param(std::string_view name);

  // HTTP. `handler` is a route name, never a raw path.
  void http_request(std::string_view handler, std::string_view method, int status, double seconds);

  // Iterations.
  void iteration(uint64_t tokens, uint64_t batch_size);
  void iteration_time(iteration_stage stage, double seconds);
  void set_batches_in_flight(uint64_t batches);

  /// K and V that a shard has pulled from a prefill worker, and how long that took.
  void kv_pulled(uint64_t bytes, double seconds);

  // KV slots of one attention worker; vllm:kv_cache_usage_perc follows as the highest ratio.
  void set_kv_slots(std::string_view worker, slot_state state, uint64_t slots);
  void set_kv_usage(std::string_view worker, double ratio);
  /// Replaces the numbers of vllm:cache_config_info.
  void set_cache_config(uint64_t block_slots, uint64_t blocks);

  // The cluster.
  void set_worker_up(std::string_view role, std::string_view worker, bool up);
  void set_worker_slow(std::string_view role, std::string_view worker, bool slow);
  /// Removes the series of a worker that left for good.
  void remove_worker(std::string_view role, std::string_view worker);
  void failover(std::string_view role, std::string_view cause);
  void request_lost(std::string_view role);
  void request_recovered(std::string_view method);
  /// Tokens of a sequence whose lost K and V were computed again.
  void kv_rebuilt(uint64_t tokens);
  /// Slots whose parity was compared with the shards' rows, and how many of them differed.
  void parity_checked(uint64_t slots, uint64_t wrong);
  /// Slots that got a parity of the shards' rows, because there was none or a wrong one.
  void parity_rebuilt(uint64_t slots);
  void request_poisoned();
  void recovery_pause(std::string_view role, std::string_view method, double seconds);
  void link_bytes(std::string_view peer_role, std::string_view transport, uint64_t bytes);
  void set_mailbox_depth(std::string_view actor_class, uint64_t depth);
  void config_reloaded(bool ok);

  /// Progress of a load phase: discover, map, weights, verify, join or warm; 0..1.
  void set_load_progress(std::string_view phase, double ratio);

  struct page {
    std::string content_type;
    std::string body;
  };
  /// All series: Prometheus text 0.0.4, or OpenMetrics 1.0 where `accept` asks for it.
  page scrape(std::string_view accept = {}) const;

private:
  struct impl;
  std::unique_ptr<impl> impl_;
};

} // namespace lamella::net
