/// Fault injection: chooses the worker.
#pragma once

#include "actors/membership/membership_state.hpp"
#include "actors/protocol/epochs.hpp"

namespace lamella::actors {

/// Whether the worker is an actor of this process; no other worker can take its seat.
bool is_of_this_process(const membership_state::member& m);

/// Forwards the fault to a matching worker process; answers its seat.
caf::result<std::string> on_injure(membership_self::stateful_pointer<membership_state> self,
                                   const injure& x);

} // namespace lamella::actors
