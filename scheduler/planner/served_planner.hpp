/// Whether copies of the measured service meet the limits, and how many.
#pragma once

#include "scheduler/planner/planner.hpp"
#include "scheduler/planner/served_simulator.hpp"

#include <string>

namespace lamella::scheduler {

struct served_plan {
  uint32_t seats = 0;      ///< of its batch; fewer than measured where a TBT limit asks for it
  uint32_t copies = 1;     ///< of the whole service, for the rate
  double tokens_per_s = 0; ///< of one copy, full
  served_result result;    ///< at its share of the rate, or full where there is none
  std::string misses;      ///< the limit that it exceeds and by how much; empty when it meets all
  bool ok() const { return misses.empty(); }
};

/// Plays the trace at full load, and at each copy's share of the rate where there is one; lowers
/// the seats, or adds copies, a few times when a limit is missed, as evaluate() does for designs.
/// The question's menu and prices play no part. Throws as simulate_served().
served_plan plan_served(const served_profile& profile, const plan_question& q,
                        const request_trace& trace);

} // namespace lamella::scheduler
