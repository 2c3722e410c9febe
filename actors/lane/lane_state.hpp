/// The configuration and the state of a LANE, which its parts share.
#pragma once

#include "actors/device/iteration.hpp"
#include "actors/protocol/batches.hpp"
#include "actors/protocol/iterations.hpp"
#include "actors/protocol/prefills.hpp"
#include "actors/protocol/pulls.hpp"
#include "actors/shared/mask_messages.hpp"
#include "scheduler/batch/decode_batch.hpp"
#include "scheduler/batch/iteration_line.hpp"
#include "scheduler/composer.hpp"
#include "scheduler/kv_layout.hpp"
#include "scheduler/learned_timeout.hpp"
#include "scheduler/prefill_plan.hpp"
#include "scheduler/pull_plan.hpp"

#include <map>
#include <optional>

namespace lamella::actors {

/// Makes a lane a BATCH: it decodes.
struct token_lane_config {
  scheduler::decode_batch_settings batch{};
  mask_maker_actor masks{}; ///< null: the lane computes masks itself
};

/// Own KV of a prefill worker, and the shards that pull from it.
struct prefill_own_kv {
  kv_source_actor source;
  std::vector<attention_shard_actor> shards; ///< of the pool; the target's shard is its own
  scheduler::kv_layout layout;               ///< of the pool
  uint32_t slots = 0;                        ///< of its own KV
  uint32_t serialize_below = 512;            ///< prompt tokens (S-M15)
  bool caches_prefixes = false; ///< the next epoch can use what the pool has of a prompt
};

/// Makes a lane compute prompts: a PREFILL WORKER, or a BATCH whose launches are mixed.
struct prompt_lane_config {
  uint32_t chunk_tokens = 512;                      ///< per iteration, over all prompts in it
  std::optional<prefill_own_kv> own = std::nullopt; ///< not of a lane that decodes
  scheduler::composer_bounds bounds{};              ///< of the time of an iteration
  scheduler::prompt_order order = scheduler::prompt_order::fair;
  uint64_t token_bytes = 0;                 ///< of K and V, over all shards
  uint32_t rebuild_percent = 70;            ///< of an iteration, while new prompts wait as well
  std::vector<batch_actor> decode_beside{}; ///< batches that are notified of rebuilds
  uint32_t scored_rows = 16;                ///< of an iteration, see scored_rows_within()
  uint32_t positions = scheduler::positions_least; ///< positions_like_a_token() of the model
};

struct lane_config {
  iteration_target target;
  global_scheduler_actor scheduler{};        ///< may be null where `tokens` is absent
  std::optional<token_lane_config> tokens{}; ///< at least one of the two
  std::optional<prompt_lane_config> prompts{};
};

/// The sequences that decode.
struct token_part {
  /// What the lane knows of a sequence beside its row, from its joining to its departure.
  struct decoder {
    batch_join asked; ///< without its runs; its position and tokens are those of the row
    model::token_history history;
    model::constrained_answer answer;
    logit_changes changes;    ///< for the next token, where they depend on the history
    uint64_t awaits_mask = 0; ///< number of the open mask question; 0: none
  };
  scheduler::decode_batch batch;
  std::map<sequence_id, decoder> decoders;
  uint64_t questions = 0; ///< for masks
  /// Of iterations without prompts.
  scheduler::learned_timeout timeout{scheduler::timeout_of_iterations};
  std::chrono::nanoseconds wakes_at{0}; ///< of the wake message that comes first; 0: there is none
};

/// The prompts that are computed.
struct prompt_part {
  struct job {
    prefill what;
    caf::typed_response_promise<prefilled> promise;
    std::optional<uint32_t> seat;
    bool cancelled = false;
    caf::actor_clock::time_point asked;
    std::optional<uint64_t> waited_us;    ///< until its first rows were computed
    std::chrono::nanoseconds came{0};     ///< by the clock of the actors
    std::chrono::nanoseconds deadline{0}; ///< of a rebuild
    std::optional<prefilled> result;      ///< computed; sent when the shards have the rows
    std::vector<sampled_token> scores;    ///< of a scored prompt, so far
    // Own KV alone:
    scheduler::pull_mode mode = scheduler::pull_mode::serialized;
    std::vector<slot_run> slots;         ///< of the worker, while it computes
    std::map<uint32_t, uint64_t> newest; ///< pull of each shard
    uint32_t pulls = 0;                  ///< under way
    uint32_t computed = 0;               ///< tokens, by iterations that have ended
    caf::error failure;
    uint32_t failures = 0; ///< runs from the start
  };
  /// Rows of some prompts on their way to one shard.
  struct pull_state {
    uint32_t shard = 0;
    std::vector<sequence_id> jobs;
    std::optional<kv_moved> first; ///< result of the side that ended first
    uint32_t answers = 0;
    caf::error failure;
    caf::actor_clock::time_point began; ///< when its rows were complete, or started
    uint64_t bytes = 0;
    uint64_t iteration = 0; ///< that still writes its rows; 0: none
  };
  /// Recomputation of lost KV: from the arrival of the first job until none is left.
  struct rebuild_watch {
    uint32_t waiting = 0;             ///< sequences
    uint64_t prompts = 0, tokens = 0; ///< answered
    bool announced = false;
    caf::actor_clock::time_point since;
  };
  std::optional<scheduler::prefill_plan> plan;
  std::map<sequence_id, job> jobs;
  /// Pieces of the iteration that failed: they are run again before anything else.
  std::vector<scheduler::prefill_piece> again;
  std::optional<scheduler::slot_pool> slots; ///< of our own KV
  std::vector<uint64_t> fences;              ///< by shard: pulls whose slots may be in use again
  std::map<uint64_t, pull_state> pulls;      ///< under way, by number
  uint64_t pull_number = 0, pulls_cancelled = 0; ///< newest numbers
  rebuild_watch rebuilds;
  uint64_t told_left = 0; ///< tokens of started prompts, as the scheduler knows them
  /// Of an iteration by the work of its prompts, and of a pull by its bytes.
  scheduler::learned_timeout timeout{scheduler::timeout_of_prompts};
  scheduler::composer composer; ///< bounds the prompts of the next iteration
  scheduler::learned_timeout pull_timeout{scheduler::timeout_of_pulls};
};

struct lane_state {
  using flight = scheduler::iteration_line::flight;
  lane_config config;
  token_part tokens;
  prompt_part prompts;
  scheduler::iteration_line line;
  bool cut = false;     ///< nothing is started: the pipeline is about to be rebuilt
  bool handing = false; ///< another pipeline takes over: nothing more is started
  caf::actor_clock::time_point prompts_until{}; ///< then, prompts on own KV are stopped as well
  std::optional<caf::typed_response_promise<bool>> handed; ///< unanswered: something still runs
  std::optional<caf::typed_response_promise<bool>>
      end_asked;        ///< answered when an iteration has ended
  uint32_t in_step = 0; ///< so many launches have none launched ahead behind them
  const char* name = "batch";
};

using lane_ptr = lane_actor::stateful_pointer<lane_state>;

} // namespace lamella::actors
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(lamella::actors::lane_config)
