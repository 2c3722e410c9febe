/// What the loss of a worker is counted as.
#pragma once

#include "actors/membership/membership.hpp"

namespace lamella::actors {

/// Of one that was asked to open an epoch and has answered with that.
net::failover_cause cause_of_refusal(const caf::error& reason);

/// Of one whose connection is over, for that reason. CAF closes the connection of who is silent and
/// of who has ended with the same word: who is silent has not been heard of for longer.
net::failover_cause cause_of_end(const membership_state& st, const scheduler::seat& where,
                                 const caf::error& reason, caf::actor_clock::time_point now);

} // namespace lamella::actors
