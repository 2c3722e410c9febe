/// Whether a service that has never served may begin, though some of its seats fail.
#pragma once

#include "scheduler/membership/epoch_plan.hpp"

#include <cstdint>
#include <set>

namespace lamella::scheduler {

enum class beginning : uint8_t {
  waits,    ///< for workers that may come
  opens,    ///< everybody is there who is needed, except for those that fail
  hopeless, ///< without those that fail it could never decode
};

/// `seats`: all there are; `ready`: those whose workers could serve; `failing`: those whose
/// processes end again and again.
beginning first_epoch(const epoch_shape& shape, const std::set<seat>& seats,
                      const std::set<seat>& ready, const std::set<seat>& failing);

} // namespace lamella::scheduler
