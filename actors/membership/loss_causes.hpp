/// Classifies the loss of a worker for the metrics.
#pragma once

#include "actors/membership/membership_state.hpp"

namespace lamella::actors {

/// Of a worker that replied to epoch_open with this error.
net::failover_cause cause_of_refusal(const caf::error& reason);

/// Of a worker whose connection closed for that reason. CAF reports a silent and an exited worker
/// alike: a silent one sent its last heartbeat longer ago.
net::failover_cause cause_of_end(const membership_state& st, const scheduler::seat& where,
                                 const caf::error& reason, caf::actor_clock::time_point now);

} // namespace lamella::actors
