/// The links over which replicas in rotation hand on the context of a batch (L-M21).
#pragma once

#include "net/link/link.hpp"
#include "scheduler/rotation.hpp"
#include "scheduler/types.hpp"

#include <algorithm>
#include <optional>
#include <vector>

namespace lamella::actors {

/// The turn of a replica, and its links. The one that hands on is the replica of the key, the one
/// that takes it is in place of the shard.
struct context_links {
  uint32_t turn = 0;
  net::link_key from, to; ///< of the replica of the turn before, to that of the next
};

/// Of replica `number` in a stream that these replicas run in turn; nothing where it runs alone.
inline std::optional<context_links> context_links_of(uint64_t epoch, scheduler::stream_id stream,
                                                     const std::vector<uint32_t>& replicas,
                                                     uint32_t number) {
  const auto place = std::find(replicas.begin(), replicas.end(), number);
  if (replicas.size() < 2 || place == replicas.end()) return std::nullopt;
  const scheduler::rotation turns{static_cast<uint32_t>(replicas.size())};
  const auto turn = static_cast<uint32_t>(place - replicas.begin());
  const auto id = scheduler::context_streams + static_cast<uint32_t>(stream);
  const auto before = replicas[turns.replica_of(turn, turns.replicas() - 1)];
  return context_links{
      turn, {epoch, id, before, number}, {epoch, id, number, replicas[turns.next_of(turn)]}};
}

/// The turn whose replica runs slice 0 of an iteration.
inline uint32_t first_turn(uint64_t iteration, uint32_t layers, uint32_t replicas) {
  return scheduler::rotation{replicas}.replica_of(0, scheduler::slice_count(iteration, 0, layers));
}

} // namespace lamella::actors
