/// Who may be killing workers, for all who must know it at once: requests say where they run,
/// MEMBERSHIP and the CHILD KEEPER which worker ended and how, the GLOBAL SCHEDULER asks who may
/// run. Outlives the pipelines. The decisions are scheduler/membership/suspects.hpp.
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

/// A worker that had a part in an epoch is gone.
struct lost_part {
  uint32_t pid = 0; ///< on this host
  uint64_t epoch = 0;
  std::vector<stream_id> streams; ///< that it served
};

/// Thread-safe; calls take a lock for microseconds.
class suspect_board {
public:
  enum class verdict : uint8_t {
    free,     ///< it may run, but not where a suspect runs
    apart,    ///< it is under test: with nobody else in its worker
    wait,     ///< not now
    poisonous ///< never again
  };

  /// What an end means for the restarts that a worker is allowed.
  enum class budget : uint8_t {
    counts,
    excused,  ///< suspects are being looked for: more ends are to be expected
    explained ///< a request was the reason: earlier ends count no more, either
  };

  /// Told, on any thread and without the lock, when verdicts have changed. The newest one is told.
  void on_change(std::function<void()> told);

  // Requests.
  /// The sequence runs on that stream from now on, in that epoch, with so many tokens drawn.
  void runs(sequence_id sequence, uint64_t epoch, stream_id where, uint32_t tokens);
  void has(sequence_id sequence, uint32_t tokens);
  /// It runs no more: it will soon again, or as soon as its reader likes, or never.
  enum class pause : uint8_t { brief, reader, done };
  void stopped(sequence_id sequence, pause why);
  /// Nothing more is wanted of the request.
  void over(request_id request);

  // Ends.
  /// A worker of this host is gone; how it ended is said later, by ended(), or was said before.
  void lost(const lost_part& part);
  /// A process has ended by its own fault, or not, or nobody can tell (then it is no fault).
  budget ended(uint32_t pid, bool own_fault);
  /// The pipeline of this process has ended by a fault of its own, with all that ran in it.
  budget ended_here();
  /// An end that ended() said to count has been explained since this was asked last.
  bool take_forgiveness();

  // The scheduler.
  verdict of(request_id request) const;
  bool hunting() const;     ///< some request is under test
  bool others_wait() const; ///< and nobody else may run

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
  budget blame(const pending_end& end);
  void tell(std::unique_lock<std::mutex>& lock);

  /// Ends whose worker is not known to be lost yet: of spares that is never said.
  static constexpr size_t known_max = 64;

  mutable std::mutex mutex_;
  scheduler::suspects suspects_;
  std::map<sequence_id, place> places_;
  std::map<uint32_t, pending_end> pending_;     ///< by pid: how it ended is not known
  std::deque<std::pair<uint32_t, bool>> known_; ///< pid, own fault: who was in flight is not known
  std::set<request_id> poisonous_;
  uint64_t newest_end_ = 0; ///< epoch; one run is one end, however many workers it kills
  bool forgiven_ = false;
  std::function<void()> told_;
};

} // namespace lamella::actors
