/// Counts ends of pipelines for `lamella_failovers_total`, each loss once.
#pragma once

#include "net/metrics/metrics.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

namespace lamella::actors {

/// MEMBERSHIP counts a lost worker. Its peers may notice the loss first, as a cut link or a missing
/// reply, and end the pipeline before the worker is reported lost: so the cause of a pipeline end
/// counts only if no worker is lost before the next pipeline serves.
class failover_tally {
public:
  using entry = std::pair<std::string, net::failover_cause>; ///< role and cause

  /// A pipeline has ended. Nothing: because of a lost worker.
  void ended(const std::string& role, std::optional<net::failover_cause> cause) {
    if (!cause)
      met_.reset();
    else if (!met_)
      met_ = {role, *cause};
  }

  /// The next pipeline serves; `losses`: lost workers counted so far. Returns the cause to count.
  std::optional<entry> serves(uint64_t losses) {
    const bool lost = losses != std::exchange(losses_, losses);
    auto counts = std::exchange(met_, std::nullopt);
    return lost ? std::nullopt : counts;
  }

private:
  std::optional<entry> met_; ///< since the newest pipeline served
  uint64_t losses_ = 0;      ///< at that time
};

} // namespace lamella::actors
