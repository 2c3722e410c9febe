/// Whether a service that has never served may start although some of its seats fail.
#pragma once

#include "scheduler/membership/epoch_plan.hpp"

#include <cstdint>
#include <set>

namespace lamella::scheduler {

enum class beginning : uint8_t {
  waits,    ///< waits for workers that may join
  opens,    ///< all needed workers are ready, except for failing seats
  hopeless, ///< decoding is impossible without the failing seats
};

/// `seats`: all seats; `ready`: those with ready workers; `failing`: those whose processes keep
/// crashing.
beginning first_epoch(const epoch_shape& shape, const std::set<seat>& seats,
                      const std::set<seat>& ready, const std::set<seat>& failing);

} // namespace lamella::scheduler
