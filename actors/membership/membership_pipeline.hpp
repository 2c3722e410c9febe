/// `batching.pipeline: auto`: MEMBERSHIP chooses it for each epoch that it opens (V-M17).
#pragma once

#include "actors/membership/membership_plan.hpp"

namespace lamella::actors {

/// A worker has answered how it is: its times are those of the service.
void note_times(membership_state& st, const membership_state::member& m, const worker_peers& x);

/// All have answered. Where the pipeline is chosen, and the other one has been better for a while
/// (scheduler::pipeline_patience), notes that an epoch with it would be better than this one.
void end_look(membership_self::stateful_pointer<membership_state> self);

/// Gives an epoch that is about to be opened the pipeline that is chosen now, and tells it with the
/// numbers it rests on. Nothing where the configuration says which one it is.
void take_pipeline(membership_self::stateful_pointer<membership_state> self, next_epoch& next);

} // namespace lamella::actors
