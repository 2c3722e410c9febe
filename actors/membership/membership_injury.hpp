/// Fault injection: chooses the worker.
#pragma once

#include "actors/membership/membership_state.hpp"

namespace lamella::actors {

/// Forwards the fault to a matching worker process; answers its seat.
caf::result<std::string> on_injure(membership_self::stateful_pointer<membership_state> self,
                                   const injure& x);

} // namespace lamella::actors
