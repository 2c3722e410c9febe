/// Which workers are late but correct: each is held against its peers (reliability A1).
#pragma once

#include "scheduler/membership/seats.hpp"

#include <chrono>
#include <cstdint>
#include <map>
#include <vector>

namespace lamella::scheduler {

/// What a worker's device has done since the last look. `units` tell how much there was to do: rows
/// of a replica, attended positions of a shard.
struct work_report {
  seat who;
  uint64_t iterations = 0, units = 0;
  std::chrono::nanoseconds busy{0};
};

/// A worker is slow when its device has taken more than three times as long as the median of its
/// peers, the others of its role, for 20 iterations in a row and in two looks in a row; it is well
/// again when it has taken less than twice as long for as many. Peers may have had other work, so
/// it must be slow both by the iteration and by the unit of work; whoever has no peers at work is
/// never judged. Cost: O(n^2) for n workers of a role.
class slow_workers {
public:
  static constexpr double slow_above = 3, well_below = 2;
  static constexpr uint64_t iterations_needed = 20;
  static constexpr uint32_t looks_needed = 2;

  /// A worker that has become slow, or well again.
  struct change {
    seat who;
    bool slow = false;
    double times = 0; ///< as long as its peers
  };

  /// One look at all workers; who is not reported has done nothing.
  std::vector<change> look(const std::vector<work_report>& reports);

  /// Somebody else sits there from now on.
  void forget(const seat& who) { known_.erase(who); }

  bool slow(const seat& who) const;

private:
  struct record {
    bool slow = false;
    uint64_t iterations = 0; ///< in a row that speak against what it is held to be
    uint32_t looks = 0;      ///< the same
  };
  std::map<seat, record> known_;
};

} // namespace lamella::scheduler
