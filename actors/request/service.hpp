/// The service as requests see it. Immutable once it serves.
#pragma once

#include "actors/protocol/actors.hpp"
#include "actors/request/aside.hpp"
#include "actors/request/constraint_store.hpp"
#include "actors/request/response_store.hpp"
#include "actors/shared/load_window.hpp"
#include "actors/shared/mask_messages.hpp"
#include "actors/shared/recovery_watch.hpp"
#include "actors/shared/suspect_board.hpp"
#include "base/environment.hpp"
#include "model/chat/chat_abilities.hpp"
#include "model/tokenizer/tokenizer.hpp"
#include "net/api/api_request.hpp"
#include "net/metrics/metrics.hpp"
#include "net/tracing/span_sink.hpp"
#include "scheduler/admission.hpp"

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace lamella::actors {

/// Settings that a reload may change for later requests; running requests keep theirs.
struct request_rules {
  net::api_limits limits;
  std::chrono::milliseconds deadline{600'000}; ///< from a request's arrival to its end
  scheduler::admission_limits queue;
};

/// Where the spans of requests go, and which requests without a traceparent get some.
struct request_traces {
  std::shared_ptr<net::span_sink> spans;     ///< never null
  std::atomic<uint32_t> sample_percent{100}; ///< a reload may change it
};

struct service {
  // The model.
  std::shared_ptr<const model::tokenizer> text;
  std::optional<model::chat_template> chat; ///< nothing: the file has none, or `chat_fault`
  std::string chat_source;                  ///< of `chat`
  std::string chat_fault;                   ///< why the file's template cannot be used
  model::chat_abilities chat_can;           ///< forms of messages that the template renders
  bool chat_hides_users = false;            ///< it rendered none of a user when it was tried
  model::tool_dialect tool_calls = model::tool_dialect_of("", ""); ///< how the model writes them
  model::reasoning_marks reasoning; ///< between which the model reasons; empty: it does not
  std::string model_name;
  std::vector<std::string> aliases;
  std::string model_file;
  int64_t created = 0; ///< when it was loaded, seconds since 1970
  std::string fingerprint;
  uint32_t context_tokens = 0;
  std::vector<model::token_id> end_tokens; ///< all that end an answer
  std::shared_ptr<constraint_store> constraints;
  std::shared_ptr<response_store> responses; ///< null: none are kept
  aside_actor aside;                         ///< parses bodies and writes long answers

  // The pipeline. Every rebuild of it makes a new service with the next epoch.
  uint64_t epoch = 0;
  global_scheduler_actor scheduler;
  kv_allocator_actor allocator;
  std::vector<prefill_worker_actor> prefill_workers; ///< the last `mixed_batches` are batches
  uint32_t mixed_batches = 0;
  std::vector<batch_actor> batches;
  mask_maker_actor masks;       ///< null: requests compute masks themselves
  uint64_t restarts = 0;        ///< of the pipeline before this one
  std::string lost_role;        ///< whose loss caused the epoch; empty: none
  bool by_parity = false;       ///< lost KV was reconstructed from the other shards
  uint32_t slots = 0;           ///< of a slot table: no sequence can be longer
  uint32_t window_slots = 0;    ///< reserved beyond a prompt
  bool caches_prefixes = false; ///< the prefix cache is enabled

  // The rules.
  request_rules rules;
  std::chrono::milliseconds ping{15'000};
  size_t piece_bytes = 65'536; ///< of a stream, given to the socket at once
  std::shared_ptr<net::metrics> metrics;
  std::shared_ptr<load_window> load;       ///< may be null
  std::shared_ptr<suspect_board> suspects; ///< may be null
  std::shared_ptr<recovery_watch> pauses;  ///< may be null
  std::shared_ptr<request_traces> traces;  ///< may be null
  environment world;

  bool serves(const std::string& name) const;

  /// The stream on which that prefill worker launches.
  stream_id prompt_stream(uint32_t worker) const {
    const auto alone = static_cast<uint32_t>(prefill_workers.size()) - mixed_batches;
    return stream_id{worker < alone ? scheduler::prefill_streams + worker : worker - alone};
  }
};

/// Maximum tokens of one sequence, prompt and answer together.
uint64_t tokens_of_a_sequence(const service& s);

/// Maximum tokens of a prompt.
uint64_t longest_prompt(const service& s);

/// Throws model_not_found unless the service serves a model of that name.
void check_model(const service& s, const std::string& name);

} // namespace lamella::actors
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(lamella::actors::service_ptr)
