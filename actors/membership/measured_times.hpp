/// Times of the service from what its workers count (scheduler/times/machine_times.hpp).
#pragma once

#include "actors/protocol/work_reports.hpp"
#include "scheduler/membership/seats.hpp"
#include "scheduler/times/machine_times.hpp"

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace lamella::actors {

struct time_info;

/// A look is one answer of each worker, and what they have done since the look before. The mean of
/// their iterations is one sample, since times are nearly linear in the size within a second.
class measured_times {
public:
  /// A worker has answered. `home`: the attention cell that it keeps KV of; empty where the pool is
  /// one. Answers of replicas count for launches, those of shards for attention.
  void note(const scheduler::seat& where, uint32_t incarnation, const worker_peers& x,
            const std::string& home);

  /// All workers have answered that will. `batches` decode, in turn at `replicas` each.
  void end_look(uint32_t batches, uint32_t replicas);

  /// The homes that there are: the times of others are forgotten. Returns those, as rows().
  std::vector<time_info> keep_homes(const std::set<std::string>& homes);

  const scheduler::machine_times& times() const { return times_; }

  /// For status.
  std::vector<time_info> rows() const;

private:
  struct counted {
    uint32_t incarnation = 0;
    work_done tokens, prompts;
  };
  struct sums {
    double iterations = 0, units = 0;
    uint32_t members = 0;
  };
  void add(scheduler::timed_work what, const std::string& home, const work_done& x);

  scheduler::machine_times times_;
  std::map<scheduler::seat, counted> last_;
  // Of the look under way:
  sums launches_;
  std::map<std::string, sums> homes_;
  double round_trip_us_ = 0;
};

} // namespace lamella::actors
