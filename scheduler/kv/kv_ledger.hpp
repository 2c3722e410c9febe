/// Who holds the KV slots of an attention pool, and what is in them (Lamina v1, 5.4). The KV
/// ALLOCATOR owns one; nothing in it waits, sends or reads a clock.
#pragma once

#include "scheduler/kv/kv_values.hpp"
#include "scheduler/prefix_cache.hpp"
#include "scheduler/slot_pool.hpp"
#include "scheduler/slot_set.hpp"

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

namespace lamella::scheduler {

struct kv_ledger_settings {
  /// How long unused KV stays in the prefix cache; 0 disables it.
  std::chrono::nanoseconds prefix_time{0};
  uint32_t prefix_least_percent = 0; ///< minimum share of a prompt for a prefix-cache hit
};

/// A move of the pool's KV to the slot tables of the next epoch.
struct kv_moving {
  static constexpr uint32_t nowhere = ~0u;
  /// What becomes of the slots of a table.
  struct table {
    uint32_t to = 0;             ///< the table of slots that belong to no sequence
    std::vector<uint32_t> into;  ///< the table that each slot goes to
    std::vector<uint32_t> slots; ///< their slots there; nowhere: none yet
    slot_set copied;             ///< their content is there
    uint32_t behind_last = 0;    ///< the slot behind the newest piece, where the next one begins
  };
  /// A table that only the next epoch has: whoever moves there is alone in it until then.
  struct new_table {
    slot_pool pool;
    std::vector<slot_run> places; ///< taken
  };
  std::vector<uint32_t> slots;        ///< of each table of the next epoch; 0: it goes
  bool level = false;                 ///< sequences change tables that stay, too
  std::vector<table> from;            ///< by table of this epoch
  std::map<uint32_t, new_table> more; ///< by number: tables that have no slots now

  uint32_t slots_of(uint32_t number) const { return number < slots.size() ? slots[number] : 0; }
  uint32_t pinned_table = 0;    ///< of the newest piece
  std::vector<slot_run> pinned; ///< being copied
};

/// The slot tables of a pool in one epoch after another. A slot is referenced once by each holder
/// and by the prefix cache. Its parts: kv_grants, kv_prefixes, kv_sweep, kv_moving,
/// kv_adopt.
struct kv_ledger {
  /// The slots of a sequence.
  struct holding {
    uint32_t member = 0;
    std::vector<slot_run> runs;
    uint64_t epoch = 0;  ///< of the last message of its holder
    uint32_t filled = 0; ///< committed positions, as of that message
    uint64_t scope = 0;  ///< of its text
    std::shared_ptr<const std::vector<model::token_id>> text{}; ///< of its first positions; or null
    /// Its first positions that an epoch has taken over; nothing: all that it had.
    std::optional<uint32_t> taken_over{};
  };
  kv_ledger_settings settings;
  kv_tables tables; ///< of the epoch
  uint64_t epoch = 0;
  std::vector<slot_pool> pools;       ///< by table
  std::vector<prefix_cache> prefixes; ///< by table
  std::map<sequence_id, holding> holders;
  /// By table, the slots in use without parity where the table shall have it.
  std::vector<slot_set> unprotected;
  std::set<sequence_id> pinned_by; ///< the parity keepers that have slots pinned
  std::optional<kv_moving> moving; ///< while KV is copied to the next epoch

  kv_ledger() = default;
  kv_ledger(const kv_ledger_settings& s, kv_tables t);

  /// Whether a member holds the parity of that table's slots, and whether one shall.
  bool has_parity(uint32_t table) const {
    return table < tables.list.size() && tables.list[table].has_parity;
  }
  bool shall_have_parity(uint32_t table) const {
    return table < tables.list.size() && !tables.list[table].parity.empty();
  }
};

/// Slots that somebody holds or the prefix cache keeps, of all tables.
uint32_t used_slots(const kv_ledger& x);

/// Slots that a reservation may get, of all tables: free ones, and those only the cache keeps.
uint32_t obtainable_slots(const kv_ledger& x);

/// Per table, the slots in use for nobody: those of holders that have not spoken in this epoch, and
/// any when there are no holders. What choices share counts for each of them, but no slot twice for
/// the pool. Cost: O(runs of those holders).
std::vector<uint32_t> orphans_of(const kv_ledger& x);

/// Everything counted slot by slot, independently of the counters of the tables; without `wanted`.
kv_usage usage_of(const kv_ledger& x);

/// Used slots of a table with parity.
uint32_t with_parity(const kv_ledger& x, uint32_t table);

} // namespace lamella::scheduler
