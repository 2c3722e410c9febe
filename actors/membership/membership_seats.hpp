/// Seats: granting, monitoring and reporting.
#pragma once

#include "actors/membership/membership_state.hpp"

#include <functional>

namespace lamella::actors {

/// The seat of that name, or the seats of all workers of that name.
std::vector<scheduler::seat> seats_named(const membership_state& st, const std::string& name);

/// Reports the current workers to all listeners.
void changed(membership_self::stateful_pointer<membership_state> self);

/// Monitors an actor whose termination means the loss of the member.
void watch(membership_self::stateful_pointer<membership_state> self, const caf::strong_actor_ptr& x,
           const membership_state::member& m);

/// An authenticated worker asks for a seat. `grow`: gives the pool one more, if it may have that.
caf::result<join_grant> on_seat(membership_self::stateful_pointer<membership_state> self,
                                const seat_ask& x,
                                const std::function<bool(scheduler::worker_role)>& grow);

} // namespace lamella::actors
