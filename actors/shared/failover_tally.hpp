/// Ends of pipelines for `lamella_failovers_total`, each loss once.
#pragma once

#include "net/metrics/metrics.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

namespace lamella::actors {

/// MEMBERSHIP counts a worker that is lost. Whoever worked with it may meet that first, as a link
/// that is cut or an answer that does not come, and ends the pipeline before anybody misses the
/// worker: so what ended a pipeline counts only if no worker is lost before the next one serves.
class failover_tally {
public:
  using entry = std::pair<std::string, net::failover_cause>; ///< whose work it was, and why

  /// A pipeline has ended. Nothing: for a worker that is lost.
  void ended(const std::string& role, std::optional<net::failover_cause> cause) {
    if (!cause)
      met_.reset();
    else if (!met_)
      met_ = {role, *cause};
  }

  /// The next one serves; `losses` of workers have been counted so far. What is to be counted.
  std::optional<entry> serves(uint64_t losses) {
    const bool lost = losses != std::exchange(losses_, losses);
    auto counts = std::exchange(met_, std::nullopt);
    return lost ? std::nullopt : counts;
  }

private:
  std::optional<entry> met_; ///< since the newest one served
  uint64_t losses_ = 0;      ///< when that began
};

} // namespace lamella::actors
