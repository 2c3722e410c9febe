/// Traffic between workers, as a metric of the control process.
#pragma once

#include "actors/protocol/actors.hpp"
#include "net/metrics/metrics.hpp"

#include <map>
#include <string>
#include <utility>

namespace lamella::actors {

/// Turns link reports of workers into counters. A worker counts from zero when it takes its seat;
/// counters of the service never decrease. A round trip is observed once per poll that finds a new
/// measurement.
class link_traffic {
public:
  /// Adds the traffic of each worker since its last report.
  void note(const system_status& status, net::metrics& metrics);

private:
  struct worker {
    uint32_t incarnation = 0;
    std::map<std::string, uint64_t> sent;     ///< bytes, by the peer's seat
    std::map<std::string, uint64_t> measured; ///< round trips, by the peer's seat
  };
  std::map<std::string, worker> seen_; ///< by seat
};

} // namespace lamella::actors
