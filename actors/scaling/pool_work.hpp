/// How much the workers of each pool have computed lately, from what they report.
#pragma once

#include "actors/protocol/actors.hpp"
#include "actors/protocol/work_reports.hpp"

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <utility>

namespace lamella::actors {

/// Differences of the workers' counters over the last seconds. Time is an argument.
class pool_work {
public:
  using time_point = std::chrono::steady_clock::time_point;
  using seconds = std::chrono::duration<double>;

  explicit pool_work(std::chrono::seconds length) : length_{length} {}

  /// One look at the workers. Looks older than the window are forgotten.
  void note(time_point now, const system_status& status);

  /// One pool, from the oldest look to the newest.
  struct spent {
    double busy = -1; ///< share of the time that the members worked; below 0: unknown
    seconds mean{0};  ///< an iteration occupies a member so long; 0: there was none
    seconds most{0};  ///< the same of the member where it is longest
  };
  spent of(const std::string& role, uint32_t members) const;

private:
  /// A worker by seat and incarnation: it counts from zero when it takes its seat.
  using who = std::pair<std::string, uint32_t>;
  struct counted {
    std::string role;
    work_done work;
  };
  struct look {
    time_point at;
    std::map<who, counted> workers;
  };
  std::chrono::seconds length_;
  std::deque<look> looks_;
};

} // namespace lamella::actors
