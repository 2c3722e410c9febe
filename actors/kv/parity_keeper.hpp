/// PARITY KEEPER: sees to it that the parity of an attention pool is what it should be, while the
/// pool serves (decision 23; reliability A6).
#pragma once

#include "actors/protocol/actors.hpp"
#include "actors/shared/digest_book.hpp"
#include "net/metrics/metrics.hpp"

#include <chrono>
#include <memory>
#include <optional>
#include <vector>

namespace lamella::actors {

struct parity_keeper_config {
  uint64_t epoch = 0;
  std::vector<attention_shard_actor> members; ///< of the pool, the one with the parity last
  kv_allocator_actor allocator;
  sequence_id pin{};                     ///< in whose name it holds slots; no request's
  uint64_t slot_bytes = 0;               ///< of a slot at a member
  uint64_t scrub_bytes_per_second = 0;   ///< read at each member; 0: nothing is checked
  uint32_t rebuild_percent = 100;        ///< of the time; 1 to 100
  bool prompts_lack_it = false;          ///< theirs is made of what shards have pulled: no news
  std::shared_ptr<net::metrics> numbers; ///< may be null
  std::shared_ptr<digest_book> digests;  ///< may be null
};

struct parity_keeper_state {
  /// Where a walk over the holders stands.
  struct place {
    sequence_id holder{};
    uint32_t position = 0;
  };
  parity_keeper_config config;
  place made, checked;
  uint64_t number = 0;                                     ///< of the newest copy between members
  std::optional<caf::actor_clock::time_point> lacks_since; ///< some slots have no parity
  uint64_t slots_made = 0;                                 ///< since then
  bool differs = false; ///< it gives up because a copy is not what was sent
  const char* name = "parity_keeper";
};

/// Two works, a few slots at a time, both in the gaps of attention:
///
/// - Slots without parity (the parity's member is new, what it had was wrong, or shards have pulled
///   the rows from a prefill worker) get theirs of the shards' rows, in `rebuild_percent` of the
///   time. New rows have theirs from whoever sends them.
/// - When there are none that can be read, it goes round and compares checksums of what the members
/// hold. A slot
///   that differs is told of and counted, has no parity from then on, and gets a new one. Which
///   member is wrong nobody can say: what is made anew protects what the shards have. Rows that
///   agree are compared with what the digest book knows of their position from earlier epochs: a
///   rebuild gives back the same bytes.
///
/// Slots are pinned while they are read, so nobody writes them. A copy that fails ends the keeper
/// with ec::link_cut (ec::rows_differ where that was the failure) when nobody was missed: then the
/// links are made anew.
caf::behavior parity_keeper(caf::stateful_actor<parity_keeper_state>* self,
                            parity_keeper_config config);

} // namespace lamella::actors
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(lamella::actors::parity_keeper_config)
