/// MEMBERSHIP: which seats there are and who sits in them; writes the epochs (decision 21).
#pragma once

#include "actors/actors.hpp"

#include <map>

namespace lamella::actors {

struct membership_state {
  std::map<std::string, worker_info> seats; ///< by seat name
  uint64_t epoch = 0;
  const char* name = "membership";
};

/// A worker that takes a seat gets the next incarnation of it; every change of a seat that was
/// taken before raises the epoch.
membership_actor::behavior_type
membership(membership_actor::stateful_pointer<membership_state> self, uint64_t epoch);

} // namespace lamella::actors
