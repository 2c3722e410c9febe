/// The parity of a pool while it serves (decision 23; reliability A6).
#pragma once

#include "actors/protocol/message.hpp"
#include "actors/protocol/values.hpp"

#include <cstdint>
#include <vector>

namespace lamella::actors {

/// Asks an allocator for the next committed slots of a table with parity, or without
/// (`unprotected`): of the holder `from` from `position` on, then of the following holders. They
/// are pinned, so that they are not reallocated, until the next request of this kind or the release
/// of `pin`.
struct kv_sweep {
  uint64_t epoch = 0;
  sequence_id pin{}; ///< a holder id that is not a sequence
  sequence_id from{};
  uint32_t position = 0;
  uint32_t slots = 1; ///< at most
  bool unprotected = false;
  uint32_t table = 0; ///< holders of others are passed over
};

/// The owner of the KV of a slot: a sequence (the first of those that share it) and a position.
struct kv_origin {
  sequence_id sequence{};
  uint32_t position = 0;
};

struct kv_swept {
  std::vector<slot_run> runs;     ///< ascending
  std::vector<kv_origin> origins; ///< of each slot, in their order
  sequence_id next{};             ///< where to continue: at the first holder after the end
  uint32_t position = 0;
  uint32_t unprotected =
      0; ///< slots without parity, including those of holders without a message in this epoch
};

/// Tells an allocator that pinned slots of a table have parity, or have none. Answered when
/// recorded.
struct kv_protection {
  uint64_t epoch = 0;
  std::vector<slot_run> runs;
  bool have = false;
  uint32_t table = 0;
};

/// Tells an allocator about rows that shards pull: they have no parity, because parity comes with
/// rows sent to all members. `complete`: the rows are committed, so parity can be computed from
/// them.
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

} // namespace lamella::actors

// clang-format off
#define LAMELLA_PARITY_MESSAGES(x) \
  x(kv_sweep) x(kv_swept) x(kv_protection) x(kv_pulled) x(kv_check) x(kv_checked)
// clang-format on
LAMELLA_PART(kv_origin)
LAMELLA_PARITY_MESSAGES(LAMELLA_MADE_ELSEWHERE)
