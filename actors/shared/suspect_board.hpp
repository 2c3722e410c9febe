/// Search for poison requests. Requests report where they run, MEMBERSHIP and the CHILD KEEPER
/// which worker exited and how; the GLOBAL SCHEDULER queries which sequences may run. Outlives the
/// pipelines. The decisions are in scheduler/membership/suspects.hpp.
#pragma once

#include "scheduler/membership/suspects.hpp"

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <utility>
#include <vector>

namespace lamella::actors {

using scheduler::request_id;
using scheduler::sequence_id;
using scheduler::stream_id;

/// A worker with a part in an epoch is lost.
struct lost_part {
  uint32_t pid = 0; ///< on this host
  uint64_t epoch = 0;
  std::vector<stream_id> streams; ///< that it served
};

/// Thread-safe; calls take a lock for microseconds.
class suspect_board {
public:
  enum class verdict : uint8_t {
    free,     ///< may run, but not where a suspect runs
    apart,    ///< under test: alone in its worker
    wait,     ///< must wait
    poisonous ///< must be failed
  };

  /// Effect of an exit on the restart budget of a worker.
  enum class budget : uint8_t {
    counts,
    excused,  ///< a search is running: more exits are expected
    explained ///< a request was the cause: earlier exits do not count either
  };

  /// Called on any thread, without the lock, when verdicts have changed. Only the newest listener
  /// is called.
  void on_change(std::function<void()> told);

  // Requests.
  /// The sequence runs on that stream from now on, in that epoch, with `tokens` tokens sampled.
  void runs(sequence_id sequence, uint64_t epoch, stream_id where, uint32_t tokens);
  void has(sequence_id sequence, uint32_t tokens);
  /// The sequence stopped running; it may run again soon, when its client reads on, or never.
  enum class pause : uint8_t { brief, reader, done };
  void stopped(sequence_id sequence, pause why);
  /// The request has ended.
  void over(request_id request);

  // Ends.
  /// A worker of this host is lost; ended() reports how it exited, before or after this call.
  void lost(const lost_part& part);
  /// A process has exited by its own fault, or not; unknown counts as no fault.
  budget ended(uint32_t pid, bool own_fault);
  /// The pipeline of this process failed by its own fault, with all its sequences.
  budget ended_here();
  /// Whether an exit that counted in ended() was explained since the last call.
  bool take_forgiveness();

  // The scheduler.
  verdict of(request_id request) const;
  bool hunting() const;     ///< a request is under test
  bool others_wait() const; ///< and no other sequence may run

private:
  struct place {
    uint64_t epoch = 0;
    stream_id stream{};
    uint32_t tokens = 0;
  };
  struct pending_end {
    uint64_t epoch = 0;
    std::vector<scheduler::in_flight> flights;
  };

  std::vector<scheduler::in_flight> flights_of(uint64_t epoch,
                                               const std::vector<stream_id>* streams) const;
  uint32_t tokens_of(sequence_id sequence) const;
  budget suspects(const pending_end& end);
  void tell(std::unique_lock<std::mutex>& lock);

  /// Exits whose worker is not reported lost yet; of spares it never is.
  static constexpr size_t known_max = 64;

  mutable std::mutex mutex_;
  scheduler::suspects suspects_;
  std::map<sequence_id, place> places_;
  std::map<uint32_t, pending_end> pending_; ///< by pid: the kind of exit is not known
  std::deque<std::pair<uint32_t, bool>>
      known_; ///< pid, own fault: the sequences in flight are not known
  std::set<request_id> poisonous_;
  uint64_t newest_end_ = 0; ///< epoch; one run counts as one exit, however many workers it kills
  bool forgiven_ = false;
  std::function<void()> told_;
};

} // namespace lamella::actors
