/// The attention cells of a service whose configuration was reloaded.
#pragma once

#include "actors/protocol/values.hpp"
#include "scheduler/membership/pool_layout.hpp"

#include <caf/all.hpp>

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace lamella::actors {

/// The attention cells from now on, for MEMBERSHIP, which takes them or refuses them with the
/// reason. Cells that are new, or had no members and get other settings, have no members then.
struct cell_roster {
  std::vector<std::string> names; ///< of all, by number; those that there were keep theirs
  std::vector<std::string> seats; ///< of each, as epoch_shape::cell_seats
  std::set<uint32_t> taken;       ///< numbers of those that are new or get other settings
  pool_sizes configured;          ///< with the partitions and the KV of those
  std::map<scheduler::seat_group, uint32_t> extra_seats; ///< of attention: for spares and parity
  std::set<scheduler::seat_group> of_children; ///< of all pools: with processes of this host
  caf::timespan resize_timeout{0}; ///< as membership_config has it, at least; 0: as it is
  /// Puts the settings of the cells in force, unless nobody waits for that any more: then false.
  /// Called on MEMBERSHIP's thread before the answer.
  std::function<bool()> take;
};

} // namespace lamella::actors
