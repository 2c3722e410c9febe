/// CHILD KEEPER: the worker processes of `placement: local`; starts them, restarts them, and leaves
/// none behind.
#pragma once

#include "actors/machine/processor_wait.hpp"
#include "actors/protocol/actors.hpp"
#include "actors/shared/suspect_board.hpp"
#include "scheduler/membership/seat_restarts.hpp"
#include "scheduler/membership/seats.hpp"

#include <caf/all.hpp>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

namespace lamella::actors {

/// State of the worker of a process, from MEMBERSHIP.
enum class worker_news : uint8_t { joined, serves, lost };

/// A process to keep alive.
struct child_command {
  scheduler::seat where; ///< the requested seat
  std::string name;
  std::vector<std::string> words; ///< of its command line, the program first
};

struct child_keeper_config {
  std::vector<child_command> children;
  std::string secret_text; ///< given to every child as descriptor 3
  /// Called at each crash of a child that keeps crashing. May be empty.
  std::function<void(const seat_failing&)> on_failing;
  /// Called before a stopped child is killed. May be empty.
  std::function<void(uint32_t pid)> on_stopped;
  std::shared_ptr<suspect_board> suspects;     ///< receives the exits of children; may be null
  std::chrono::milliseconds poll_interval{50}; ///< polling interval for exited children
  std::chrono::milliseconds grace{3000};       ///< between SIGTERM and SIGKILL at shutdown
  /// Time after which a running child counts as hung when its worker is lost and does not rejoin;
  /// and where its threads have waited for processors meanwhile, because the machine has too much
  /// to do.
  std::chrono::milliseconds silence{5000}, starved{30'000};
  /// How long the threads of a process have waited for processors so far.
  std::function<std::optional<std::chrono::nanoseconds>(uint32_t pid)> waited_of =
      waited_for_processors;
  /// Time after which a stopped child (SIGSTOP) is killed, because its peers wait for it.
  std::chrono::milliseconds stopped{200};
};

struct child_keeper_state {
  struct child {
    child_command what;
    pid_t pid = 0; ///< 0: not running
    caf::actor_clock::time_point start_at{};
    std::optional<caf::actor_clock::time_point>
        lost_at; ///< when its worker was lost, until it rejoins
    std::optional<std::chrono::nanoseconds> waited_then; ///< for processors, until then
    std::optional<caf::actor_clock::time_point>
        stopped_at; ///< when it was stopped, until it continues
    scheduler::seat_restarts restarts{5, std::chrono::seconds{30}};
    uint64_t starts = 0;
  };
  /// A process whose seat was taken away: its worker is told to go.
  struct leaver {
    std::string name;
    pid_t pid = 0;
    caf::actor_clock::time_point killed_at{}; ///< if it has not gone by then
  };
  child_keeper_config config;
  std::vector<child> children;
  std::vector<leaver> leaving;
  std::optional<uint64_t> oom_kills; ///< of this control group, counted so far
  bool closing = false;
  const char* name = "child_keeper";
};

/// An exited child is restarted without limit; the delay is from
/// `scheduler/membership/seat_restarts`. Crashes (a fatal signal, a bad exit code) count as faults;
/// a kill from outside does not (decision 30), nor a crash that a poison request explains, nor a
/// hang: a child that is lost and does not rejoin is killed, and so is a stopped one, long before
/// its heartbeats are missed. A new list of children starts those that are new; those that are not
/// in it are not restarted, and killed if they do not end within `grace`. `close` stops all
/// children, with SIGTERM, then SIGKILL, and answers how many had to be killed; it blocks for at
/// most `grace`. Must be spawned detached: the kernel kills a child when the *thread* that started
/// it ends (PR_SET_PDEATHSIG).
child_keeper_actor::behavior_type
child_keeper(child_keeper_actor::stateful_pointer<child_keeper_state> self,
             child_keeper_config config);

/// Starts it, on a thread of its own.
child_keeper_actor start_child_keeper(caf::actor_system& system, child_keeper_config config);

} // namespace lamella::actors
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(lamella::actors::child_keeper_config)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(lamella::actors::worker_news)
