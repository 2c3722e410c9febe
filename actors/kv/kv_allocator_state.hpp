/// The configuration and the state of the KV ALLOCATOR, which its parts share.
#pragma once

#include "actors/protocol/actors.hpp"
#include "actors/protocol/kv.hpp"
#include "actors/protocol/moves.hpp"
#include "actors/protocol/parity.hpp"
#include "net/metrics/metrics.hpp"
#include "scheduler/prefix_cache.hpp"
#include "scheduler/slot_pool.hpp"
#include "scheduler/slot_set.hpp"

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

namespace lamella::actors {

struct kv_allocator_config {
  std::string pool = "main"; ///< its name in metrics
  kv_tables tables;          ///< of the epoch
  /// How long unused KV stays in the prefix cache; 0 disables it.
  caf::timespan prefix_time{0};
  uint32_t prefix_least_percent = 0; ///< minimum share of a prompt for a prefix-cache hit
  /// How long the KV of an earlier epoch is kept for its holders.
  caf::timespan timeout{std::chrono::seconds{5}};
  std::shared_ptr<net::metrics> metrics; ///< may be null
};

/// A move of the pool's KV to the slot tables of the next epoch.
struct kv_moving {
  static constexpr uint32_t nowhere = ~0u;
  /// What becomes of the slots of a table.
  struct table {
    uint32_t to = 0;             ///< the table of slots that belong to no sequence
    std::vector<uint32_t> into;  ///< the table that each slot goes to
    std::vector<uint32_t> slots; ///< their slots there; nowhere: none yet
    scheduler::slot_set copied;  ///< their content is there
  };
  /// A table that only the next epoch has: whoever moves there is alone in it until then.
  struct new_table {
    scheduler::slot_pool pool;
    std::vector<slot_run> places; ///< taken
  };
  std::vector<uint32_t> slots;        ///< of each table of the next epoch; 0: it goes
  bool level = false;                 ///< sequences change tables that stay, too
  std::vector<table> from;            ///< by table of this epoch
  std::map<uint32_t, new_table> more; ///< by number: tables that have no slots now

  uint32_t slots_of(uint32_t number) const { return number < slots.size() ? slots[number] : 0; }
  uint32_t pinned_table = 0;
  std::vector<slot_run> pinned; ///< being copied
};

struct kv_allocator_state {
  /// The slots of a sequence.
  struct holding {
    uint32_t member = 0;
    std::vector<slot_run> runs;
    uint64_t epoch = 0;  ///< of the last message of its holder
    uint32_t filled = 0; ///< committed positions, as of that message
    uint64_t scope = 0;  ///< of its text
    std::shared_ptr<const std::vector<token_id>> text{}; ///< of its first positions; may be null
    /// Its first positions that an epoch has taken over; nothing: all that it had.
    std::optional<uint32_t> taken_over{};
  };
  kv_allocator_config config;
  uint64_t epoch = 0;
  std::vector<attention_shard_actor> shards;     ///< of the epoch
  std::vector<scheduler::slot_pool> pools;       ///< by table
  std::vector<scheduler::prefix_cache> prefixes; ///< by table
  bool looking = false;                          ///< an expiry check is scheduled
  std::map<sequence_id, holding> holders;
  /// By table, the slots in use without parity where the table shall have it.
  std::vector<scheduler::slot_set> unprotected;
  std::set<sequence_id> pinned_by;      ///< the parity keepers that have slots pinned
  std::optional<kv_moving> moving;      ///< while KV is copied to the next epoch
  std::vector<kv_waiter_actor> waiters; ///< get kv_freed when slots are freed
  uint64_t wanted = 0;                  ///< as in kv_usage
  bool trimmed = true;                  ///< no slot was used since memory was given back
  uint64_t trim_ticket = 0;             ///< of the newest delayed trim
  uint32_t trimming = 0;                ///< shards that have not answered
  uint64_t trim_round = 0;              ///< the newest that was begun or given up
  struct late_question {
    kv_reserve question;
    caf::strong_actor_ptr asker;
    caf::typed_response_promise<kv_grant> promise;
  };
  std::vector<late_question> waiting_for_trim;
  /// Whether a member holds the parity of that table's slots, and whether one shall.
  bool has_parity(uint32_t table) const {
    return table < config.tables.list.size() && config.tables.list[table].has_parity;
  }
  bool shall_have_parity(uint32_t table) const {
    return table < config.tables.list.size() && !config.tables.list[table].parity.empty();
  }
  const char* name = "kv_allocator";
};

} // namespace lamella::actors
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(lamella::actors::kv_allocator_config)
