/// Changes of the sizes of pools, as MEMBERSHIP keeps them.
#pragma once

#include "actors/protocol/pools.hpp"

#include <caf/actor_clock.hpp>

#include <map>
#include <optional>
#include <string>

namespace lamella::actors {

struct size_changes {
  std::optional<pool_change> current; ///< under way
  caf::actor_clock::time_point since{};
  std::map<std::string, pool_change> ended; ///< the newest of each pool
};

} // namespace lamella::actors
