/// What is said about the parity of a pool while it serves (decision 23; reliability A6).
#pragma once

#include "actors/messages.hpp"

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

struct kv_swept {
  std::vector<slot_run> runs; ///< ascending
  sequence_id next{};         ///< where to go on: at the first holder once the end was reached
  uint32_t position = 0;
  uint32_t bare = 0; ///< slots without their parity, also those of holders not heard of yet
};

/// Tells an allocator that pinned slots have their parity, or do not. Answered when it knows.
struct kv_protection {
  uint64_t epoch = 0;
  std::vector<slot_run> runs;
  bool have = false;
};

/// Asks a shard for a checksum of each slot of the runs (gpu/kv_checksums.hpp).
struct kv_check {
  std::vector<slot_run> runs;
};

struct kv_checked {
  std::vector<uint32_t> sums; ///< in the order of the runs
};

LAMELLA_INSPECT(kv_sweep, x.epoch, x.pin, x.from, x.position, x.slots, x.bare)
LAMELLA_INSPECT(kv_swept, x.runs, x.next, x.position, x.bare)
LAMELLA_INSPECT(kv_protection, x.epoch, x.runs, x.have)
LAMELLA_INSPECT(kv_check, x.runs)
LAMELLA_INSPECT(kv_checked, x.sums)

} // namespace lamella::actors
