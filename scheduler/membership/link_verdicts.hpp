/// Determines the workers at fault from the pairs of workers that cannot reach each other.
#pragma once

#include "scheduler/membership/seats.hpp"

#include <cstdint>
#include <set>
#include <span>
#include <utility>
#include <vector>

namespace lamella::scheduler {

/// A worker, and the cost of fencing it.
struct link_party {
  seat who;
  bool fixed = false;       ///< cannot be replaced: it is never at fault
  bool has_part = false;    ///< of the open epoch, or of the next one
  bool replaceable = false; ///< an epoch is possible without it
  uint64_t joined = 0;      ///< increases with each join
};

/// Two workers of which at least one does not reach the other.
using failed_pair = std::pair<seat, seat>;

/// The workers to fence, so that no failed pair is left among the others. The worker with the most
/// failed pairs is fenced first. On ties: the one without a part, else the replaceable one, else
/// the one without KV, else the later one. Pairs of two fixed workers, or with an unknown one, are
/// ignored. O(parties * pairs).
std::vector<seat> at_fault(std::span<const link_party> parties, const std::set<failed_pair>& pairs);

} // namespace lamella::scheduler
