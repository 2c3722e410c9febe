/// Who sits where: seats are granted, watched, and told of.
#pragma once

#include "actors/membership/membership.hpp"

namespace lamella::actors {

/// Tells whoever wants to know who is there now.
void changed(membership_self::stateful_pointer<membership_state> self);

/// That actor's end is the end of the member.
void watch(membership_self::stateful_pointer<membership_state> self, const caf::strong_actor_ptr& x,
           const membership_state::member& m);

/// A worker that has proved itself wants a seat.
caf::result<join_grant> on_seat(membership_self::stateful_pointer<membership_state> self,
                                const seat_ask& x);

} // namespace lamella::actors
