/// PARITY KEEPER: rebuilds and checks the parity of an attention cell while the pool serves
/// (decision 23; reliability A6).
#pragma once

#include "actors/kv/kv_remake.hpp"
#include "actors/protocol/actors.hpp"
#include "actors/protocol/values.hpp"
#include "actors/shared/digest_book.hpp"
#include "net/metrics/metrics.hpp"

#include <chrono>
#include <memory>
#include <optional>
#include <vector>

namespace lamella::actors {

struct parity_keeper_config {
  uint64_t epoch = 0;
  uint32_t table = 0;               ///< of the cell
  std::vector<pool_member> members; ///< of the cell, the one with the parity last
  kv_allocator_actor allocator;
  caf::actor membership;               ///< MEMBERSHIP, told when all parity is there; may be null
  sequence_id pin{};                   ///< holder id for its pinned slots; not that of a request
  uint64_t slot_bytes = 0;             ///< of a slot at a member
  uint64_t scrub_bytes_per_second = 0; ///< read at each member; 0: nothing is checked
  uint32_t rebuild_percent = 100;      ///< of the time; 1 to 100
  bool prompts_lack_it =
      false; ///< parity of prompts is computed from pulled rows, so missing parity is routine
  std::shared_ptr<net::metrics> metrics; ///< may be null
  std::shared_ptr<digest_book> digests;  ///< may be null
};

struct parity_keeper_state {
  /// Position of a walk over the holders.
  struct place {
    sequence_id holder{};
    uint32_t position = 0;
  };
  parity_keeper_config config;
  place made, checked;
  uint64_t number = 0;                                     ///< of the newest copy between members
  std::optional<caf::actor_clock::time_point> lacks_since; ///< since when slots are unprotected
  uint64_t slots_made = 0;                                 ///< since then
  bool working = false;                                    ///< from a turn until its rest
  bool stops = false;                                      ///< another pipeline takes over
  std::optional<caf::typed_response_promise<bool>> handed; ///< once its work has ended
  bool told_whole = false; ///< to MEMBERSHIP: all that is in use has had its parity in this epoch
  bool differs = false;    ///< it stops because the digests of a transfer differ
  const char* name = "parity_keeper";
};

/// Two tasks, a few slots at a time, both in the gaps of attention:
///
/// - Rebuild: slots without parity (the parity's member is new, their parity was wrong, or shards
///   pulled the rows from a prefill worker) get parity computed from the shards' rows, in
/// `rebuild_percent` of the time. New rows get their parity from their sender.
/// - Scrub: when no readable slot lacks parity, it compares checksums of the members' rows. A slot
///   that differs is logged and counted, becomes unprotected, and is rebuilt. The parity does not
///   show which member is wrong: the new parity protects the rows that the shards hold. Rows that
///   agree are compared with the digest of their position from earlier epochs: a rebuild must
///   restore the same bytes.
///
/// Slots are pinned while they are read, so that no launch writes them. After a failed transfer the
/// keeper terminates with ec::link_cut (ec::rows_differ where digests differ) unless a worker was
/// reported lost: then the links are rebuilt. hand_over: nothing is begun any more, because the
/// keeper of the next epoch looks after the same slots; answered when what was begun has ended.
caf::behavior parity_keeper(caf::stateful_actor<parity_keeper_state>* self,
                            parity_keeper_config config);

} // namespace lamella::actors
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(lamella::actors::parity_keeper_config)
