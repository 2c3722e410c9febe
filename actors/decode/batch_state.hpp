/// The configuration and the state of a BATCH, which its parts share.
#pragma once

#include "actors/device/iteration.hpp"
#include "actors/protocol/iterations.hpp"
#include "actors/protocol/kv.hpp"
#include "actors/protocol/mask_messages.hpp"
#include "actors/protocol/requests.hpp"
#include "scheduler/decode_pace.hpp"
#include "scheduler/iteration_deadline.hpp"
#include "scheduler/join_gathering.hpp"
#include "scheduler/seat_table.hpp"

#include <deque>
#include <map>
#include <optional>

namespace lamella::actors {

struct batch_config {
  iteration_target target;
  global_scheduler_actor scheduler;
  uint32_t window_slots = 32; ///< slots added when a sequence runs short
  /// Share of the time for decoding while lost KV is recomputed on the same processors; 100: all.
  uint32_t rebuild_percent = 100;
  mask_maker_actor masks{}; ///< null: the batch computes masks itself
  bool gathers = false;     ///< an epoch before this one has left sequences, which will join
};

struct batch_state {
  /// One sequence in the batch. Positions and counts are those of the committed tokens.
  struct seat {
    batch_join member;
    uint32_t capacity = 0;   ///< number of its slots
    uint32_t in_flight = 0;  ///< launched iterations that include it
    bool growing = false;    ///< has asked for slots
    bool leaving = false;    ///< generates no more tokens
    bool evicted = false;    ///< preempted because slots ran out
    bool steps_back = false; ///< yields: keeps its slots and comes back
    kv_written written;      ///< since it joined
    bool exposed = false;    ///< an aborted iteration may still write its slots
    model::token_history history;
    model::constrained_answer answer;
    logit_changes changes;    ///< for the next token, where they depend on the history
    uint64_t awaits_mask = 0; ///< number of the open mask question; 0: none
  };
  /// A launched iteration: the seats of its rows, in order.
  struct flight {
    uint64_t iteration;
    std::vector<uint32_t> rows;
    caf::actor_clock::time_point launched;
  };
  batch_config config;
  scheduler::seat_table table;
  std::map<uint32_t, seat> seats;          ///< by seat number
  std::map<sequence_id, uint32_t> seat_of; ///< the same, by sequence
  std::deque<batch_join> joining;          ///< seated before the next launch
  std::deque<flight> flights;              ///< oldest first; at most two
  uint64_t iteration = 0;
  uint64_t questions = 0; ///< for masks
  uint32_t failures = 0;  ///< iterations failed in a row
  bool silence = false;   ///< one of these timed out without a reported cause
  scheduler::iteration_deadline deadline;
  scheduler::decode_pace pace;
  scheduler::join_gathering gathering;
  bool resting = false; ///< a wake message is pending
  bool handing = false; ///< another pipeline takes over: nothing more is launched
  std::optional<caf::typed_response_promise<bool>> handed; ///< unanswered: something still runs
  const char* name = "batch";
};

} // namespace lamella::actors
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(lamella::actors::batch_config)
