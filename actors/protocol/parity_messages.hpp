/// What is said about the parity of a pool while it serves (decision 23; reliability A6).
#pragma once

#include "actors/protocol/messages.hpp"

namespace lamella::actors {

/// Asks an allocator for the next slots that are written for good and have their parity, or that
/// lack it (`bare`): of the holder `from` at `position` and on, then of those behind it. They are
/// pinned, so that nobody else gets them, until the next such question or the release of `pin`.
struct kv_sweep {
  uint64_t epoch = 0;
  sequence_id pin{}; ///< a holder that is no sequence
  sequence_id from{};
  uint32_t position = 0;
  uint32_t slots = 1; ///< at most
  bool bare = false;
};

/// Whose K and V a slot has: of a sequence (the first of those that share it) at a position.
struct kv_origin {
  sequence_id sequence{};
  uint32_t position = 0;
};

struct kv_swept {
  std::vector<slot_run> runs;     ///< ascending
  std::vector<kv_origin> origins; ///< of each slot, in their order
  sequence_id next{};             ///< where to go on: at the first holder once the end was reached
  uint32_t position = 0;
  uint32_t bare = 0; ///< slots without their parity, also those of holders not heard of yet
};

/// Tells an allocator that pinned slots have their parity, or do not. Answered when it knows.
struct kv_protection {
  uint64_t epoch = 0;
  std::vector<slot_run> runs;
  bool have = false;
};

/// Tells an allocator of rows that shards pull: they have no parity, which is made of what is sent
/// to all members. `complete`: they are there for good; from now on it can be made of them.
struct kv_pulled {
  uint64_t epoch = 0;
  sequence_id holder{};
  std::vector<slot_run> runs; ///< its first positions
  bool complete = false;
};

/// Asks a shard for a checksum of each slot of the runs (gpu/runners/kv_checksums.hpp).
struct kv_check {
  std::vector<slot_run> runs;
};

struct kv_checked {
  std::vector<uint32_t> sums; ///< in the order of the runs
};

LAMELLA_INSPECT(kv_sweep, x.epoch, x.pin, x.from, x.position, x.slots, x.bare)
LAMELLA_INSPECT(kv_origin, x.sequence, x.position)
LAMELLA_INSPECT(kv_swept, x.runs, x.origins, x.next, x.position, x.bare)
LAMELLA_INSPECT(kv_protection, x.epoch, x.runs, x.have)
LAMELLA_INSPECT(kv_pulled, x.epoch, x.holder, x.runs, x.complete)
LAMELLA_INSPECT(kv_check, x.runs)
LAMELLA_INSPECT(kv_checked, x.sums)

} // namespace lamella::actors
