/// Opening, handing out and closing epochs: MEMBERSHIP and the pipeline's supervisor.
#pragma once

#include "actors/membership/membership_state.hpp"

#include <string>

namespace lamella::actors {

using membership_ptr = membership_self::stateful_pointer<membership_state>;

/// Opens the next epoch when it was requested and enough workers are ready.
void try_open(membership_ptr self);

/// Stops opening an epoch beside the one that serves, or that one itself.
void abort_opening(membership_ptr self);

/// Ends all epochs; the supervisor will ask for another one.
void close_epochs(membership_ptr self, const worker_info& who, const std::string& what);

/// Tells the supervisor when the workers allow a better epoch than the one that serves.
void consider(membership_ptr self, const std::string& reason);

/// Asks for an epoch on its own: whatever served, does not.
caf::result<epoch_members> on_ask(membership_ptr self, uint64_t built);

/// Asks for an epoch beside the one that serves.
caf::result<epoch_members> on_next(membership_ptr self, uint64_t built);

/// The pipeline has moved to the newest epoch, or stays where it is; then `moved` is not called.
void on_settled(membership_ptr self, const epoch_settled& x, void (*moved)(membership_ptr));

/// What the pipeline could not move to is tried again after a while.
void retry_dropped(membership_ptr self);

/// Gives up an epoch beside the one that serves before the supervisor does, who would not take it
/// any more.
void watch_opening(membership_ptr self);

/// Where too few shards are there for an epoch and no others come, those that are left serve, until
/// the pool can have its size again.
void serve_with_fewer(membership_ptr self);

} // namespace lamella::actors
