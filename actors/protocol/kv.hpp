/// KV slots: reserving, filling and releasing them (KV ALLOCATOR).
#pragma once

#include "actors/protocol/actors.hpp"
#include "actors/protocol/kv_holding.hpp"
#include "actors/protocol/message.hpp"
#include "actors/protocol/values.hpp"

#include <cstdint>
#include <vector>

namespace lamella::actors {

using scheduler::kv_need;
using scheduler::kv_table;
using scheduler::kv_tables;
using scheduler::kv_takeover;
using scheduler::kv_usage;
using scheduler::kv_written;
using scheduler::reserve_mode;

/// Reserves all of the needs or none. Refused when fewer than `keep_free` slots would be left, or
/// when `epoch` is not the allocator's.
struct kv_reserve {
  std::vector<kv_need> needs;
  uint32_t keep_free = 0;
  bool tell = false; ///< after a refusal, send kv_freed to the sender when slots are freed
  uint64_t epoch = 0;
};

struct kv_grant {
  std::vector<kv_holding> holdings; ///< in the order of the needs
};

/// Frees all slots of the holders. Sent after the last launch that uses them has ended; ignored
/// when `epoch` is not the allocator's.
struct kv_release {
  std::vector<sequence_id> holders;
  uint64_t epoch = 0;
  std::vector<kv_written> written{}; ///< per holder, or none at all
};

/// The KV of a holder's first positions is committed: other sequences may share it.
struct kv_filled {
  sequence_id holder{};
  uint64_t epoch = 0;
  uint32_t positions = 0;
};

/// The holder's KV may be corrupt: its logits are not finite, or a recomputed token differed.
struct kv_doubt {
  sequence_id holder{};
  uint64_t epoch = 0;
};

/// Slots became free after a reservation was refused.
struct kv_freed {
  uint32_t free = 0;
};

/// Asks a shard to give unused memory back to the system; only while no slot is in use.
struct kv_trim {};

/// Asks an allocator for the used slots of a table that have parity.
struct kv_inventory_ask {
  uint32_t table = 0;
};

struct kv_inventory {
  std::vector<slot_run> runs; ///< ascending
};

/// A new epoch of the pool. Holders whose KV it takes over keep their slots if they resume them
/// soon (L-M25).
struct kv_adopt {
  uint64_t epoch = 0;
  std::vector<attention_shard_actor> shards;
  kv_takeover takes{};
  bool planned = false; ///< the epoch before has served until now, and ended in order
};

} // namespace lamella::actors

// clang-format off
#define LAMELLA_KV_MESSAGES(x) \
  x(kv_reserve) x(kv_grant) x(kv_release) x(kv_filled) x(kv_doubt) x(kv_freed) x(kv_trim) \
  x(kv_usage) x(kv_inventory_ask) x(kv_inventory) x(kv_adopt)
// clang-format on
LAMELLA_PART(kv_need)
LAMELLA_PART(kv_takeover)
LAMELLA_PART(kv_written)
LAMELLA_PART(kv_table)
LAMELLA_PART(kv_tables)
LAMELLA_KV_MESSAGES(LAMELLA_MADE_ELSEWHERE)
