/// The configuration and the state of the GLOBAL SCHEDULER, which its parts share.
#pragma once

#include "actors/protocol/actors.hpp"
#include "actors/protocol/admission.hpp"
#include "actors/protocol/prefills.hpp"
#include "actors/shared/health.hpp"
#include "actors/shared/suspect_board.hpp"
#include "net/metrics/metrics.hpp"
#include "scheduler/admission.hpp"
#include "scheduler/limits.hpp"
#include "scheduler/machine_label.hpp"

#include <map>
#include <memory>
#include <optional>
#include <set>

namespace lamella::actors {

struct global_scheduler_config {
  scheduler::admission_limits limits;
  uint32_t batches = 1;
  uint32_t seats_per_batch = 64;
  uint32_t prefill_workers = 1;
  /// Additional prefill workers on replicas that decode, for prompts with a prefix-cache hit and
  /// for those that overflow; 0: the others do both.
  uint32_t mixed_workers = 0;
  /// The mixed workers are the batches: a prompt's worker is its batch, unless a prefill worker
  /// takes it.
  bool mixed_launches = false;
  /// The last so many batches are on seats of the prefill pool: machines for prompts, which decode
  /// when all others are full (S-M07). Where there are prefill workers as well, each of them has KV
  /// of its own and is on the seat of one of these batches, in the same order.
  uint32_t prompt_batches = 0;
  /// Prompts that would make every prefill worker's queue longer than so many tokens overflow onto
  /// replicas that decode (S-M07); 0: none does.
  uint64_t overflow_tokens = 0;
  /// Seconds after which a mixed replica changes its pool (S-M09), with mixed launches; 0: never.
  double repurpose_s = 0;
  uint32_t window_slots =
      scheduler::limits::window_slots; ///< reserved for each choice beyond its prompt
  uint32_t slots = 0;                  ///< of the largest table: upper bound of a reservation
  uint32_t spare_slots = 0; ///< that new work leaves free in a table while other work runs
  uint64_t epoch = 0;
  std::shared_ptr<net::metrics> metrics;   ///< may be null
  std::shared_ptr<health_board> health;    ///< may be null; notified when the queue is full
  std::shared_ptr<suspect_board> suspects; ///< may be null; isolated and poisonous sequences
  std::optional<sequence_id> canary;       ///< its own token is no request: it is not counted
  /// Replicas of batches and prefill workers; empty: unknown, and isolation is impossible.
  std::vector<uint32_t> replica_of_batch, replica_of_prefill;
  /// Slot tables near each batch (scheduler/kv/near_tables.hpp); empty: no table is nearer than
  /// another.
  std::vector<std::vector<uint32_t>> near_tables;
};

struct global_scheduler_state {
  global_scheduler_config config;
  kv_allocator_actor allocator;
  std::optional<scheduler::admission> queue;
  struct waiter {
    caf::typed_response_promise<admitted> promise;
    kv_text text;
    caf::actor_clock::time_point since;
    bool fits = true; ///< else it waits for a pipeline with more slots or seats
  };
  struct unbegun_prompt {
    uint32_t choices = 1;
    caf::actor_clock::time_point since;
    uint32_t worker = 0; ///< that has it
    uint64_t tokens = 0; ///< to compute
  };
  std::map<sequence_id, waiter> waiting;  ///< by first sequence
  std::map<sequence_id, uint32_t> seated; ///< running sequences and their batches
  /// Seated prompts without a computed row: they still count as waiting.
  std::map<sequence_id, unbegun_prompt> unbegun;
  std::vector<uint64_t> seats; ///< taken seats by batch
  uint32_t next_prefill = 0;
  /// By prefill worker: tokens left of the prompts that it has started, as it told last (S-M06).
  std::vector<uint64_t> prefill_left;
  std::map<sequence_id, scheduler::admission_entry>
      held;                                     ///< waiting, but not in the queue: by first
  std::vector<scheduler::machine_label> labels; ///< of mixed workers
  std::map<uint32_t, batch_actor> batches;      ///< by number
  std::set<sequence_id> idle; ///< sequences with KV (as far as known) and without a seat
  bool clearing = false;      ///< misplaced sequences were asked to yield
  bool asking = false;        ///< a reservation for the head of the queue is pending
  bool starved = false;       ///< the head was refused; wait for kv_freed
  bool again = false;         ///< what has changed since the question may make up for a refusal
  bool draining = false;
  const char* name = "global_scheduler";
};

using scheduler_ptr = global_scheduler_actor::stateful_pointer<global_scheduler_state>;

} // namespace lamella::actors
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(lamella::actors::global_scheduler_config)
