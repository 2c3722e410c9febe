/// Changes of the pools while a service runs.
#pragma once

#include "actors/protocol/actors.hpp"
#include "actors/protocol/message.hpp"

#include <cstdint>
#include <string>

namespace lamella::actors {

/// A change that leaves the KV of each member as large as it is.
constexpr uint64_t kv_as_it_is = ~uint64_t{0};
/// As the members of a pool_resize: as many as the pool has, or is changing to.
constexpr uint32_t members_as_they_are = ~uint32_t{0};

/// Reasons of refusals that pass by themselves; of a change follows which one.
constexpr const char* other_change = "another change is under way";
constexpr const char* not_started = "the service has not started yet";
constexpr const char* no_epoch = "no epoch is open: the pipeline is being made anew";

/// Whether a change that MEMBERSHIP refused with that error, which reads as `text`, may be taken
/// later; so may one on which no answer came.
bool passes_by_itself(const caf::error& refusal, const std::string& text);

/// Asks MEMBERSHIP to change the size of a pool or cell. Answered at once: refused with the reason,
/// or under way.
struct pool_resize {
  std::string pool; ///< model, attention or prefill, or a cell: "attention/far"
  uint32_t members = 0;
  std::string partition{}; ///< of a cell: "heads" or "requests"; empty: as it is
  /// KV of each member of an attention pool or cell, or of a prefill worker of its own, in bytes;
  /// 0: as the service sized it at its start.
  uint64_t kv_bytes = kv_as_it_is;
};

/// A change of a pool. The newest one of each pool is in system_status.
struct pool_change {
  std::string pool;
  uint32_t from = 0, to = 0;
  /// "none", "short" (of lost workers), "under way", "done" or "rolled back"; of one that a reload
  /// asked for and that waits for others "queued", which MEMBERSHIP does not know.
  std::string state;
  std::string reason; ///< what it waits for, or why it was rolled back; may be empty
  /// Of an attention cell: "heads" or "requests", as it is before the change or without one; else
  /// empty.
  std::string partition{};
  std::string to_partition{}; ///< that the change gives it; empty: the same
  uint64_t kv_bytes = 0;      ///< of each member, before the change or without one; 0: as at start
  uint64_t to_kv_bytes = kv_as_it_is; ///< that the change gives it
};

/// How many members a pool may have that follows the workers of other hosts which join and leave,
/// from now on; no `most`: it does not follow them.
struct pool_bounds {
  std::string pool; ///< model, attention or prefill
  uint32_t least = 1, most = 0;
};

/// Asks MEMBERSHIP for an epoch of the same sizes in which sequences move between slot tables until
/// these are about equally full. Nothing happens while another change is under way.
struct pool_balance {
  uint64_t epoch = 0; ///< that serves
};

} // namespace lamella::actors

// clang-format off
#define LAMELLA_POOLS_MESSAGES(x) \
  x(pool_resize) x(pool_change) x(pool_bounds) x(pool_balance)
// clang-format on
LAMELLA_POOLS_MESSAGES(LAMELLA_MADE_ELSEWHERE)
