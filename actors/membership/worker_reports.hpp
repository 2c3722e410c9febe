/// What workers report of themselves, as metrics of the control process.
#pragma once

#include "actors/protocol/worker_messages.hpp"
#include "base/time_counts.hpp"
#include "net/metrics/metrics.hpp"
#include "scheduler/membership/seats.hpp"

#include <array>
#include <chrono>
#include <map>
#include <optional>

namespace lamella::actors {

/// The name of whoever sits there in metrics: "model-0".
std::string worker_label(const scheduler::seat& where);

/// Turns reports into metrics. A worker counts from zero when it takes its seat, counters of the
/// service never go back.
class worker_reports {
public:
  using time_point = std::chrono::steady_clock::time_point;

  /// Somebody in that seat has said something.
  void heard(const scheduler::seat& where, time_point now) { heard_[where] = now; }

  /// When anybody in that seat was last heard of; nothing: never.
  std::optional<time_point> last_heard(const scheduler::seat& where) const {
    const auto found = heard_.find(where);
    return found == heard_.end() ? std::nullopt : std::optional{found->second};
  }

  /// Adds what a worker has done since it was noted last.
  void note(const scheduler::seat& where, uint32_t incarnation, const worker_peers& x,
            net::metrics& numbers);

  /// How long each seat has been silent; one that nobody was ever heard of in, since the first
  /// call.
  void tell_ages(const scheduler::seat_plan& seats, time_point now, net::metrics& numbers);

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
