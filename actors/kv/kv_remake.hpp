/// Reconstruction of the rows of one member of a cell with parity by XOR of all others (decision
/// 23; reliability A6).
#pragma once

#include "actors/protocol/actors.hpp"
#include "actors/protocol/values.hpp"
#include "net/metrics/metrics.hpp"
#include "scheduler/kv_layout.hpp"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace lamella::actors {

/// A shard and its number in the pool.
struct pool_member {
  uint32_t number = 0;
  attention_shard_actor shard;
};

/// The members of a cell, the one with the parity last. `shards`: of the pool, by number.
inline std::vector<pool_member> members_of_cell(const scheduler::kv_layout& layout, uint32_t cell,
                                                const std::vector<attention_shard_actor>& shards) {
  std::vector<pool_member> result;
  for (const auto number : layout.members_of(cell)) result.push_back({number, shards.at(number)});
  return result;
}

struct kv_remake {
  uint64_t epoch = 0;
  std::vector<pool_member> members; ///< of the cell, the one with the parity last
  uint32_t target = 0;              ///< its place among them
  std::vector<slot_run> runs;
  uint64_t number = 1; ///< increases with each reconstruction of a target and epoch
  caf::timespan timeout{};
  std::shared_ptr<net::metrics> metrics; ///< may be null
};

/// Why the reconstruction failed.
struct remake_failure {
  std::string reason;
  bool differs = false; ///< the transfer completed, but the digests of both sides differ
};

/// Members send their rows one after the other, because the rows are XORed into the same slots;
/// those of the first member overwrite the slots. Calls `done` once, on the thread of `self`, with
/// the reason after a failure; the target's rows are then invalid. Moves (members - 1) * KV of the
/// runs at a member.
void remake(caf::event_based_actor* self, kv_remake what,
            std::function<void(const std::optional<remake_failure>& failure)> done);

} // namespace lamella::actors
