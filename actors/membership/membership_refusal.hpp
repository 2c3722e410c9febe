/// Who may not take the seat that was granted.
#pragma once

#include "actors/membership/membership.hpp"

#include <optional>
#include <string>

namespace lamella::actors {

/// Why a worker with these facts cannot be taken. The first one of a pool on devices of its own
/// says which kernels the others must have.
std::optional<std::string> refuse(membership_state& st, scheduler::worker_role role,
                                  const worker_facts& x);

} // namespace lamella::actors
