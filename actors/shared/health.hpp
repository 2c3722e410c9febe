/// State behind the health probes: readable by any thread without a message to an actor.
#pragma once

#include "actors/shared/pulse.hpp"
#include "actors/shared/recovery_watch.hpp"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace lamella::actors {

/// One per process. Written by the node and the gateway, read on I/O threads: probes answer in
/// microseconds at any load.
class health_board {
public:
  enum class phase : uint8_t { loading, serving, rebuilding, draining, failed };

  /// The workers of a role: `up` of `need` workers have finished loading. Spares have no part until
  /// a worker is lost.
  struct role {
    std::string name;
    uint32_t need = 0, up = 0;
    uint32_t spares = 0, spares_up = 0;
    bool serves = true; ///< every needed part has a worker or a spare
  };

  explicit health_board(std::chrono::milliseconds iteration_max_age,
                        std::chrono::milliseconds max_pause = std::chrono::seconds{2})
      : beats{iteration_max_age}, pauses{max_pause} {}

  void enter(phase x) { phase_.store(x); }
  phase where() const { return phase_.load(); }
  /// Of a phase of loading; without `eta_seconds` nobody knows how long it takes.
  void set_progress(const std::string& name, double ratio, std::optional<double> eta_seconds);
  void set_roles(std::vector<role> roles);
  /// Empty seats, as text; empty when there are none.
  void set_missing(std::string seats);
  /// Seats whose processes keep crashing, as text; empty when there are none.
  void set_failing(std::string seats);
  /// Seats whose workers live and are not used, as text; empty when there are none.
  void set_fenced(std::string seats);
  /// Seats with slow workers (gray failure), as text; empty when there are none.
  void set_slow(std::string seats);
  /// A pipeline is ready for requests.
  void set_served();
  /// Blocks until a pipeline is ready, at most for `limit`; returns whether it is.
  bool wait_served(std::chrono::milliseconds limit);
  /// A role that cannot serve because a part has no worker and no spare; empty: none.
  std::string lacking() const;
  void set_queue_full(bool full) { queue_full_.store(full); }
  /// A poison-request search is running: long pauses are expected, and new requests are accepted.
  void set_hunting(bool hunting) { hunting_.store(hunting); }

  enum class probe : uint8_t { live, ready, health };
  struct answer {
    int status = 200;
    std::string body; ///< JSON
  };
  answer ask(probe kind, std::chrono::steady_clock::time_point now) const;

  pulse beats;
  recovery_watch pauses;

private:
  /// What a probe is answered from, as of one moment.
  struct facts {
    phase where = phase::loading;
    std::chrono::milliseconds age{}; ///< of the last iteration
    std::string lacks;               ///< a role with neither member nor spare; else empty
    std::string missing, slow;       ///< workers, ready to be appended to a reason
    recovery_watch::view pause;
    bool lost = false; ///< a worker or a spare
  };
  struct verdict {
    bool good = true;
    const char* status = "ok";
    std::string reason;
  };
  /// Why the probe is answered with 503; good where it is not.
  verdict why_not(probe kind, const facts& x) const;
  /// What limits a service that answers with 200; empty: nothing.
  static std::string why_degraded(probe kind, const facts& x);

  std::atomic<phase> phase_{phase::loading};
  std::atomic<bool> queue_full_{false};
  std::atomic<bool> hunting_{false};
  mutable std::mutex mutex_; ///< of the members below
  std::string progress_name_ = "discover";
  double progress_ratio_ = 0;
  std::optional<double> progress_eta_;
  std::vector<role> roles_;
  std::string missing_, slow_, failing_, fenced_;
  bool served_ = false;
  std::condition_variable served_now_;
};

} // namespace lamella::actors
