/// Simulates a trace on hypothetical devices, with the live admission, placement and slots.
#pragma once

#include "scheduler/planner/simulation.hpp"

namespace lamella::scheduler {

/// Runs the whole trace. Throws std::invalid_argument when the design, or what scaling makes of it,
/// is refused or no request of the trace fits. Cost: O(iterations * batches + tokens / window * log
/// requests).
simulation_result simulate(const decode_design& design, const cost_model& cost,
                           const request_trace& trace, const simulation_options& options = {});

} // namespace lamella::scheduler
