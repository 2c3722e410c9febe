/// The configuration and the state of a PREFILL WORKER, which its parts share.
#pragma once

#include "actors/device/iteration.hpp"
#include "actors/protocol/iterations.hpp"
#include "actors/protocol/prefills.hpp"
#include "actors/protocol/pulls.hpp"
#include "scheduler/iteration_pace.hpp"
#include "scheduler/kv_layout.hpp"
#include "scheduler/prefill_plan.hpp"
#include "scheduler/pull_plan.hpp"
#include "scheduler/seat_table.hpp"
#include "scheduler/work_deadline.hpp"

#include <map>

namespace lamella::actors {

/// Own KV of a prefill worker, and the shards that pull from it.
struct prefill_own_kv {
  kv_source_actor source;
  std::vector<attention_shard_actor> shards; ///< of the pool; the target's shard is its own
  scheduler::kv_layout layout;               ///< of the pool
  uint32_t slots = 0;                        ///< of its own KV
  uint32_t serialize_below = 512;            ///< prompt tokens (S-M15)
  bool parity = false; ///< the pool has parity (its shard is not in `shards`): pulled rows lack it
};

struct prefill_worker_config {
  iteration_target target;
  uint32_t chunk_tokens = 512; ///< per iteration, over all prompts in it
  std::optional<prefill_own_kv> own = std::nullopt;
  /// What an iteration should take at most; 0: no bound.
  std::chrono::milliseconds iteration_most = scheduler::prefill_plan::iteration_target;
  scheduler::prompt_order order = scheduler::prompt_order::fair;
  uint64_t token_bytes = 0;                 ///< of K and V, over all shards
  uint32_t rebuild_percent = 70;            ///< of an iteration, while new prompts wait as well
  std::vector<batch_actor> decode_beside{}; ///< batches that are notified of rebuilds
  global_scheduler_actor scheduler{};       ///< notified of started prompts; may be null
  uint32_t scored_rows = 16;                ///< of an iteration, see scored_rows_within()
};

struct prefill_worker_state {
  /// Timeout of a pull with complete rows, the same as on the devices of its two sides.
  static constexpr std::chrono::milliseconds pull_limit{20'000};
  struct job {
    prefill what;
    caf::typed_response_promise<prefilled> promise;
    std::optional<uint32_t> seat;
    bool cancelled = false;
    caf::actor_clock::time_point asked;
    std::optional<uint64_t> waited_us;    ///< until its first rows were computed
    std::chrono::nanoseconds came{0};     ///< by the clock of the actors
    std::chrono::nanoseconds deadline{0}; ///< of a rebuild
    // Own KV alone:
    scheduler::pull_mode mode = scheduler::pull_mode::serialized;
    std::vector<slot_run> slots;         ///< of the worker, while it computes
    std::map<uint32_t, uint64_t> newest; ///< pull of each shard
    uint32_t pulls = 0;                  ///< under way
    std::optional<prefilled> result;     ///< computed; sent when the shards have the rows
    std::vector<sampled_token> scores;   ///< of a scored prompt, so far
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
  prefill_worker_config config;
  std::optional<scheduler::prefill_plan> plan;
  scheduler::seat_table seats;
  std::map<sequence_id, job> jobs;
  std::optional<scheduler::slot_pool> slots; ///< of our own KV
  std::vector<uint64_t> fences;              ///< by shard: pulls whose slots may be in use again
  std::map<uint64_t, pull_state> pulls;      ///< under way, by number
  uint64_t pull_number = 0, pulls_cancelled = 0; ///< newest numbers
  bool cut = false;     ///< no new work is started: the pipeline is about to be rebuilt
  bool handing = false; ///< another pipeline takes over: no prompt is started
  std::optional<caf::typed_response_promise<bool>> handed; ///< unanswered: something still runs
  /// Recomputation of lost KV: from the arrival of the first job until none is left.
  struct rebuild_watch {
    uint32_t waiting = 0;             ///< sequences
    uint64_t prompts = 0, tokens = 0; ///< answered
    bool announced = false;
    caf::actor_clock::time_point since;
  } rebuilds;
  /// The iteration that runs, if one does.
  struct flight {
    iteration_launch launch;
    caf::actor_clock::time_point launched;
    std::vector<scheduler::prefill_piece> pieces; ///< in the order of the launch's spans
  };
  std::optional<flight> current;
  uint64_t iteration = 0;
  uint64_t told_left = 0; ///< tokens of started prompts, as the scheduler knows them
  uint32_t failures = 0;  ///< in a row
  /// Of an iteration by the work of its rows, and of a pull by its bytes.
  scheduler::work_deadline deadline{64, first_iterations::most};
  scheduler::iteration_pace pace; ///< bounds the next iteration
  scheduler::work_deadline pull_deadline{1 << 20, pull_limit, 1 << 20};
  bool silence = false; ///< one of these timed out without a reported cause
  const char* name = "prefill_worker";
};

using prefill_ptr = prefill_worker_actor::stateful_pointer<prefill_worker_state>;

} // namespace lamella::actors
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(lamella::actors::prefill_worker_config)
