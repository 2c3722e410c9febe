/// What is asked of a KV ledger and what it answers; messages carry these as they are.
#pragma once

#include "model/token.hpp"
#include "scheduler/types.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace lamella::scheduler {

/// The tokens of a sequence from position 0 on, as the key of its KV in the prefix cache. Without
/// tokens, the sequence does not use the cache.
struct kv_text {
  uint64_t scope = 0; ///< sequences of different scopes share nothing
  std::vector<model::token_id> tokens;
  bool computed = false; ///< takes nothing from the cache: every row of it is to be computed
  /// An epoch took it over in the middle of its prompt: however little the cache has of it is used.
  bool resumes = false;
};

/// Slots of a sequence.
struct kv_holding {
  sequence_id holder{};
  uint32_t member = 0;        ///< the table of its slots
  std::vector<slot_run> runs; ///< the added slots, shared ones first; `resume`: all
  bool kept = false;          ///< `resume`: the previous holding is still valid
  uint32_t cached = 0;        ///< else: its first positions with KV from the prefix cache
};

/// Reservation mode: extend the holding; start fresh, where leftovers of an earlier epoch are
/// freed; resume the holding if it is still valid, else start fresh.
enum class reserve_mode : uint8_t { extend, fresh, resume };

/// The reservation of one holder: the first `share_tokens` slots of another holder, then `slots` of
/// its own. `slots` includes those that the prefix cache provides.
struct kv_need {
  sequence_id holder{};
  uint32_t slots = 0; ///< `resume`: the whole holding
  sequence_id share_from{};
  uint32_t share_tokens = 0;
  reserve_mode mode = reserve_mode::extend;
  uint32_t filled = 0;          ///< `extend`, `resume`: its positions with committed KV
  kv_text text{};               ///< `fresh`, `resume`
  std::vector<uint32_t> near{}; ///< tables near its batch, preferred; empty: all are alike
};

/// KV that a holder wrote since it joined its batch, for the prefix cache.
struct kv_written {
  uint32_t position = 0;               ///< of the first token
  std::vector<model::token_id> tokens; ///< may be empty
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

/// What of a ledger an epoch takes over.
struct kv_takeover {
  std::vector<uint32_t> lost; ///< tables of which a member is without the KV of the epoch before
  /// Tables of which a member's KV was reconstructed: slots without parity are missing.
  std::vector<uint32_t> rebuilt{};
  std::vector<uint32_t> parity_is_new{}; ///< tables whose slots in use have no parity yet
  kv_tables tables{};                    ///< of the epoch; none: as before
  bool moved = false; ///< the KV was copied to the shards of the epoch, as the ledger was told
};

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

/// The owner of the KV of a slot: a sequence (the first of those that share it) and a position.
struct kv_origin {
  sequence_id sequence{};
  uint32_t position = 0;
};

/// The next committed slots of a table with parity, or without (`unprotected`): of the holder
/// `from` from `position` on, then of the following holders.
struct kv_walk {
  sequence_id pin{}; ///< a holder id that is not a sequence
  sequence_id from{};
  uint32_t position = 0;
  uint32_t slots = 1; ///< at most
  bool unprotected = false;
  uint32_t table = 0; ///< holders of others are passed over
};

struct kv_swept {
  std::vector<slot_run> runs;     ///< ascending
  std::vector<kv_origin> origins; ///< of each slot, in their order
  sequence_id next{};             ///< where to continue: at the first holder after the end
  uint32_t position = 0;
  /// Slots without parity, including those of holders without a message in this epoch.
  uint32_t unprotected = 0;
};

/// Slots to copy; none: all that is committed has been copied.
struct kv_move_piece {
  uint32_t from_table = 0, to_table = 0;
  std::vector<slot_run> from, to; ///< of equal lengths
  uint32_t left = 0;              ///< further slots that are committed and not copied
};

/// The share of its slots that sequences have of the fullest table, less that of the emptiest.
struct kv_balance {
  double now = 0;
  double after = 0; ///< when as many sequences as possible had moved; `now` where that is small
};

} // namespace lamella::scheduler
