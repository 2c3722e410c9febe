/// Reachability of a peer over the data plane, both ways, from periodic probes.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>

namespace lamella::net {

/// Probe interval and reply timeout. A packet that is lost once is retransmitted within the
/// timeout.
struct reach_pace {
  std::chrono::milliseconds every{100};
  std::chrono::milliseconds timeout{300};
  std::chrono::milliseconds again{50}; ///< after a failed probe
};

/// Written on the data plane's own thread, read by any. Only failures while this process ran count:
/// while it was stopped, it sent no probes.
class peer_reach {
public:
  using clock = std::chrono::steady_clock;

  void answered() {
    failing_since_.store(0);
    ever_.store(true);
  }
  void failed(clock::time_point now) {
    int64_t none = 0;
    failing_since_.compare_exchange_strong(none, now.time_since_epoch().count());
  }

  /// The peer has replied, and no probe has failed since.
  bool answers() const { return ever_.load() && failing_since_.load() == 0; }

  /// Time during which all probes failed; nothing: no probe failed since the last reply.
  std::optional<std::chrono::milliseconds> failing(clock::time_point now) const {
    const auto since = failing_since_.load();
    if (since == 0) return std::nullopt;
    const auto began = clock::time_point{clock::duration{since}};
    return std::chrono::duration_cast<std::chrono::milliseconds>(now - began);
  }

private:
  std::atomic<bool> ever_{false};
  std::atomic<int64_t> failing_since_{0}; ///< on the clock; 0: it does not
};

} // namespace lamella::net
