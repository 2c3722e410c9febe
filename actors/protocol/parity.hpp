/// The parity of a pool while it serves (decision 23; reliability A6).
#pragma once

#include "actors/protocol/message.hpp"
#include "actors/protocol/values.hpp"
#include "scheduler/kv/kv_values.hpp"

#include <cstdint>
#include <vector>

namespace lamella::actors {

using scheduler::kv_origin;
using scheduler::kv_swept;
using scheduler::kv_walk;

/// Asks an allocator for the next slots of a walk. They are pinned, so that they are not
/// reallocated, until the next request of this kind or the release of `walk.pin`.
struct kv_sweep {
  uint64_t epoch = 0;
  kv_walk walk{};
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
LAMELLA_PART(kv_walk)
LAMELLA_PARITY_MESSAGES(LAMELLA_MADE_ELSEWHERE)
