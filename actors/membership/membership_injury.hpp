/// Harm that is asked for: who gets it.
#pragma once

#include "actors/membership/membership.hpp"

namespace lamella::actors {

/// Whether the worker is one of this process, whose seat nobody else can take.
bool is_of_this_process(const membership_state::member& m);

/// Passes the injury on to a worker process that fits; answers its seat.
caf::result<std::string> on_injure(membership_self::stateful_pointer<membership_state> self,
                                   const injure& x);

} // namespace lamella::actors
