/// KV slots: reserving, filling and releasing them (KV ALLOCATOR).
#pragma once

#include "actors/protocol/actors.hpp"
#include "actors/protocol/kv_holding.hpp"
#include "actors/protocol/message.hpp"
#include "actors/protocol/values.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace lamella::actors {

/// Reservation mode: extend the holding (`more`); start fresh, where leftovers of an earlier epoch
/// are freed (`begin`); resume the holding if it is still valid, else start fresh (`go_on`).
enum class reserve_mode : uint8_t { extend, fresh, resume };

/// The reservation of one holder: the first `share_tokens` slots of another holder, then `slots` of
/// its own. `slots` includes those that the prefix cache provides.
struct kv_need {
  sequence_id holder{};
  uint32_t slots = 0; ///< go_on: the whole holding
  sequence_id share_from{};
  uint32_t share_tokens = 0;
  reserve_mode mode = reserve_mode::extend;
  uint32_t filled = 0; ///< more, go_on: its positions with committed KV
  kv_text text{};      ///< begin, go_on
};

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

/// KV that a holder wrote since it joined its batch, for the prefix cache.
struct kv_written {
  uint32_t position = 0;        ///< of the first token
  std::vector<token_id> tokens; ///< may be empty
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

struct kv_usage {
  std::vector<uint32_t> slots; ///< per table
  std::vector<uint32_t> used;
  uint64_t wanted = 0; ///< slots of the newest question that was refused, until one is granted
  uint32_t cached = 0; ///< unused slots that the prefix cache keeps
  uint32_t parity = 0; ///< used slots with parity in this epoch
  uint64_t orphan = 0; ///< used slots without a holder (leaked or of a lost epoch)
  // Counted independently, as a consistency check:
  uint64_t free = 0;       ///< slots in free lists
  uint64_t references = 0; ///< sum of the reference counts of slots
  uint64_t held = 0;       ///< sum of the slots of all holders and the prefix cache
};

/// Asks an allocator for the used slots of a table that have parity.
struct kv_inventory_ask {
  uint32_t table = 0;
};

struct kv_inventory {
  std::vector<slot_run> runs; ///< ascending
};

/// A slot table, and the names of the members that store it, each some heads.
struct kv_table {
  std::vector<std::string> members;
  uint32_t slots = 0;
  std::string parity{};    ///< the member that holds, or shall hold, their parity; empty: none
  bool has_parity = false; ///< it is there in this epoch
};

/// The slot tables of an attention pool.
struct kv_tables {
  std::vector<kv_table> list; ///< by number
};

/// A new epoch of the pool. The KV of the tables in `lost` is lost; other holders keep their slots
/// if they resume them soon (L-M25).
struct kv_adopt {
  uint64_t epoch = 0;
  std::vector<attention_shard_actor> shards;
  std::vector<uint32_t> lost; ///< tables of which a member is without the KV of the epoch before
  /// Tables of which a member's KV was reconstructed: slots without parity are missing.
  std::vector<uint32_t> rebuilt{};
  std::vector<uint32_t> parity_is_new{}; ///< tables whose slots in use have no parity yet
  kv_tables tables{};                    ///< of the epoch; none: as before
  bool planned = false; ///< the epoch before has served until now, and ended in order
  bool moved = false;   ///< the KV was copied to the shards of the epoch, as the allocator was told
};

} // namespace lamella::actors

// clang-format off
#define LAMELLA_KV_MESSAGES(x) \
  x(kv_reserve) x(kv_grant) x(kv_release) x(kv_filled) x(kv_doubt) x(kv_freed) x(kv_trim) \
  x(kv_usage) x(kv_inventory_ask) x(kv_inventory) x(kv_adopt)
// clang-format on
LAMELLA_PART(kv_need)
LAMELLA_PART(kv_written)
LAMELLA_PART(kv_table)
LAMELLA_PART(kv_tables)
LAMELLA_KV_MESSAGES(LAMELLA_MADE_ELSEWHERE)
