/// Detection of slow workers (gray failure): each is compared with its peers (reliability A1).
#pragma once

#include "scheduler/membership/seats.hpp"

#include <chrono>
#include <cstdint>
#include <map>
#include <vector>

namespace lamella::scheduler {

/// Work of a worker's device since the last poll. `units` measure the amount: rows of a replica,
/// attended positions of a shard in each of its KV heads.
struct work_report {
  seat who;
  uint64_t iterations = 0, units = 0;
  std::chrono::nanoseconds busy{0};
};

/// A worker is slow when its device has taken more than three times as long as the median of its
/// peers, the others of its seat group, for 20 iterations and two polls in a row; it has recovered
/// when it has taken less than twice as long for as many. Peers may have had other work, so it must
/// be slow both per iteration and per unit of work; a worker without active peers is never judged.
/// Attention cells with a device, a placement or threads of their own are no peers of others.
/// Cost: O(n^2) for n workers of a role.
class slow_workers {
public:
  static constexpr double slow_above = 3, well_below = 2;
  static constexpr uint64_t iterations_needed = 20;
  static constexpr uint32_t looks_needed = 2;

  /// A worker that has become slow or has recovered.
  struct change {
    seat who;
    bool slow = false;
    double times = 0; ///< slowdown relative to its peers
  };

  /// One poll of all workers; a worker without a report has done no work.
  std::vector<change> look(const std::vector<work_report>& reports);

  /// Another worker takes that seat.
  void forget(const seat& who) { known_.erase(who); }
  /// A worker that was slow in another seat, or before, takes that one: it can recover.
  void assume_slow(const seat& who) { known_[who] = {true}; }

  bool slow(const seat& who) const;

private:
  struct record {
    bool slow = false;
    uint64_t iterations = 0; ///< in a row that contradict its current state
    uint32_t looks = 0;      ///< polls, likewise
  };
  std::map<seat, record> known_;
};

} // namespace lamella::scheduler
