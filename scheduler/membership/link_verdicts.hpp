/// Who is at fault when some workers cannot reach some others: which pairs fail tells.
#pragma once

#include "scheduler/membership/seats.hpp"

#include <cstdint>
#include <set>
#include <span>
#include <utility>
#include <vector>

namespace lamella::scheduler {

/// A worker, and what it would cost to do without it.
struct link_party {
  seat who;
  bool fixed = false;       ///< nobody else can sit there: it is never at fault
  bool has_part = false;    ///< of the open epoch, or of the next one
  bool replaceable = false; ///< an epoch is possible without it
  uint64_t joined = 0;      ///< grows with each join
};

/// Two workers of which at least one does not hear the other.
using failed_pair = std::pair<seat, seat>;

/// The workers to be fenced, so that no failed pair is left among the others. A worker that fails
/// with the most others goes first. Where two fail as often, the one without a part goes, else the
/// one that others can stand in for, else the one that keeps no KV, else the later one. Pairs of
/// two that are fixed, or with somebody who is not named, are nobody's fault. O(parties * pairs).
std::vector<seat> at_fault(std::span<const link_party> parties, const std::set<failed_pair>& pairs);

} // namespace lamella::scheduler
