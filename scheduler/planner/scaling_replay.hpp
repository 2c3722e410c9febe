/// The decisions that the autoscaler takes, or took, over looks that were written down.
#pragma once

#include "scheduler/scaling_policy.hpp"

#include <functional>
#include <istream>
#include <vector>

namespace lamella::scheduler {

/// A look, and what the policy said.
struct replayed_look {
  scaling_seconds at{0};
  scaling_decision decision;
};

/// Lets a policy look at each line of a file of scaling_text. Its decisions change nothing in what
/// it sees: the looks are those of the service that wrote them, so they are the same decisions
/// where the settings are the same. `change` may change those of the file, or the defaults where it
/// has none. Empty lines are passed over. Throws table_error with the line.
std::vector<replayed_look>
replay_scaling(std::istream& in, const std::function<void(scaling_settings&)>& change = {});

} // namespace lamella::scheduler
