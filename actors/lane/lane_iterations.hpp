/// Iterations of a LANE: launched, ended, failed (scheduler/batch/iteration_line.hpp).
#pragma once

#include "actors/lane/lane_state.hpp"

namespace lamella::actors {

/// Hands the next iteration to the devices; false when there is nothing to run. Its answer commits
/// tokens and prompts, its failure is retried or ends the lane.
bool launch_iteration(lane_ptr self);

/// A device, a link or a pull reports a failure; of an iteration that is not in flight it is
/// ignored.
void on_failure(lane_ptr self, const iteration_failed& x);

} // namespace lamella::actors
