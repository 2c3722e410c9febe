/// Checks of a worker before it takes the granted seat.
#pragma once

#include "actors/membership/membership_state.hpp"

#include <optional>
#include <string>

namespace lamella::actors {

/// Why a worker with these properties is rejected. The first worker of a pool on devices of its own
/// determines the kernel set of the others.
std::optional<std::string> refuse(membership_state& st, scheduler::worker_role role,
                                  const worker_facts& x);

} // namespace lamella::actors
