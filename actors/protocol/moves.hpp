/// Moves: the KV of a pool is copied to the shards of the next epoch while the present one serves
/// (MOVER and KV ALLOCATOR). K and V of a position are written once, so what is committed can be
/// copied in pieces until little is left; the rest follows when no batch runs.
#pragma once

#include "actors/protocol/actors.hpp"
#include "actors/protocol/message.hpp"
#include "actors/protocol/values.hpp"
#include "scheduler/kv/kv_values.hpp"
#include "scheduler/kv_move.hpp"

#include <cstdint>
#include <vector>

namespace lamella::actors {

using scheduler::kv_balance;
using scheduler::kv_move_load;
using scheduler::kv_move_piece;

/// Prepares a move to tables of so many slots; 0: the table goes. Answered with what is in use,
/// when every slot in use has a place there; with ec::kv_exhausted when there is no room: repeat it
/// later. Repeating it is harmless.
struct kv_move_begin {
  uint64_t epoch = 0;          ///< that serves
  std::vector<uint32_t> slots; ///< by table of the next epoch
  bool level = false; ///< sequences change their table until all tables are about equally full
};

/// The slots that a move has to copy.
struct kv_move_plan {
  std::vector<kv_move_load> loads;
};

/// Asks for committed slots that were not copied yet, at most `slots` of one table. They are pinned
/// until the next request of this kind.
struct kv_move_ask {
  uint64_t epoch = 0;
  uint32_t slots = 1;
};

/// The pinned slots have been copied.
struct kv_move_done {
  uint64_t epoch = 0;
};

/// Forgets the move: the pool stays where it is.
struct kv_move_abort {
  uint64_t epoch = 0;
};

/// Asks how unequally full the tables are.
struct kv_balance_ask {
  uint64_t epoch = 0;
};

} // namespace lamella::actors

// clang-format off
#define LAMELLA_MOVES_MESSAGES(x) \
  x(kv_move_begin) x(kv_move_plan) x(kv_move_ask) x(kv_move_piece) x(kv_move_done) x(kv_move_abort) \
  x(kv_balance_ask) x(kv_balance)
// clang-format on
LAMELLA_PART(kv_move_load)
LAMELLA_MOVES_MESSAGES(LAMELLA_MADE_ELSEWHERE)
