/// Placement of a new sequence: batch, prefill worker and attention member, chosen together when it
/// is admitted (S-M04).
#pragma once

#include <cstdint>
#include <optional>
#include <span>

namespace lamella::scheduler {

/// The least loaded place with room for `wanted` more (join the shortest queue, S-M05); the first
/// on ties, so that the choice is reproducible. Nothing when no place has room.
inline std::optional<uint32_t> least_loaded(std::span<const uint64_t> load, uint64_t limit,
                                            uint64_t wanted) {
  std::optional<uint32_t> best;
  for (uint32_t i = 0; i < load.size(); ++i)
    if (load[i] + wanted <= limit && (!best || load[i] < load[*best])) best = i;
  return best;
}

} // namespace lamella::scheduler
