/// Reports of workers as metrics of the control process.
#pragma once

#include "actors/protocol/work_reports.hpp"
#include "base/time_histogram.hpp"
#include "net/metrics/metrics.hpp"
#include "scheduler/membership/seats.hpp"

#include <array>
#include <chrono>
#include <map>
#include <optional>

namespace lamella::actors {

/// The name of a seat's worker in metrics: "model-0".
std::string worker_label(const scheduler::seat& where);

/// Turns reports into metrics. A worker counts from zero when it takes its seat; counters of the
/// service never decrease.
class worker_reports {
public:
  using time_point = std::chrono::steady_clock::time_point;

  /// A message of the worker in that seat arrived.
  void heard(const scheduler::seat& where, time_point now) { heard_[where] = now; }

  /// Time of the last message of that seat; nothing: none yet.
  std::optional<time_point> last_heard(const scheduler::seat& where) const {
    const auto found = heard_.find(where);
    return found == heard_.end() ? std::nullopt : std::optional{found->second};
  }

  /// Adds the work of a worker since its last report.
  void note(const scheduler::seat& where, uint32_t incarnation, const worker_peers& x,
            net::metrics& metrics);

  /// Age of the last message of each seat; of a seat without messages, since the first call.
  void tell_ages(const scheduler::seat_plan& seats, time_point now, net::metrics& metrics);

private:
  struct report {
    uint32_t incarnation = 0;
    uint64_t computed_ns = 0;
    std::vector<stage_report> stages;
    std::array<uint64_t, net::frame_faults> dropped{};
    uint64_t log_dropped = 0;
  };
  std::map<scheduler::seat, report> last_;
  std::map<scheduler::seat, time_point> heard_;
};

} // namespace lamella::actors
