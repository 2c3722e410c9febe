/// Which replica runs which slice of an iteration (L-M17, L-M20; Lamina 4.3).
#pragma once

#include "gpu/ring/channel.hpp"

#include <cstdint>
#include <memory>

namespace lamella::gpu {

/// The replicas of a stream run its slices in turn. One replica: it runs them all.
struct slice_turns {
  uint32_t replicas = 1;
  uint32_t first = 0; ///< the turn of slice 0 of this iteration

  uint32_t of(uint32_t slice) const { return (first + slice) % replicas; }
  bool rotate() const { return replicas > 1; }
};

/// Both ends of a stream's link to one replica, or to the shard, as one side has them.
struct runner_link {
  std::shared_ptr<channel_receiver> from;
  std::shared_ptr<channel_sender> to;
};

} // namespace lamella::gpu
