/// CHILD KEEPER: the worker processes of `placement: local`; starts them, restarts them, and leaves
/// none behind.
#pragma once

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

/// What MEMBERSHIP knows of the worker of a process.
enum class worker_news : uint8_t { joined, serves, lost };

/// Told of the workers of its processes, by process id.
using child_keeper_actor =
    caf::typed_actor<caf::reacts_to<caf::tick_atom>, caf::reacts_to<uint32_t, worker_news>,
                     caf::replies_to<caf::close_atom>::with<uint32_t>,
                     caf::replies_to<status_atom>::with<supervisor_status>>;

/// A process to keep alive.
struct child_command {
  scheduler::seat where; ///< the seat that it asks for
  std::string name;
  std::vector<std::string> words; ///< of its command line, the program first
};

struct child_keeper_config {
  std::vector<child_command> children;
  std::string secret_text; ///< given to every child as descriptor 3
  /// A child ends by itself again and again; called at each such end. May be empty.
  std::function<void(const seat_failing&)> on_failing;
  /// A child stands still; it is killed next. May be empty.
  std::function<void(uint32_t pid)> on_stopped;
  std::shared_ptr<suspect_board> blame;     ///< told how children end; may be null
  std::chrono::milliseconds look_every{50}; ///< for children that have ended
  std::chrono::milliseconds grace{3000};    ///< between SIGTERM and SIGKILL at the end
  /// A child that runs but whose worker is lost and does not join again for so long hangs.
  std::chrono::milliseconds silence{5000};
  /// A child that has been stopped (SIGSTOP) for so long is killed: the others wait for it.
  std::chrono::milliseconds stopped{200};
};

struct child_keeper_state {
  struct child {
    child_command what;
    pid_t pid = 0; ///< 0: not running
    caf::actor_clock::time_point start_at{};
    std::optional<caf::actor_clock::time_point> lost_at;    ///< since then it has not joined again
    std::optional<caf::actor_clock::time_point> stopped_at; ///< since then it has not run
    scheduler::seat_restarts restarts{5, std::chrono::seconds{30}};
    uint64_t starts = 0;
  };
  child_keeper_config config;
  std::vector<child> children;
  std::optional<uint64_t> oom_kills; ///< of this control group that are accounted for
  bool closing = false;
  const char* name = "child_keeper";
};

/// A child that has ended is started again, for ever; whose delay is
/// `scheduler/membership/seat_restarts`. Ends by a fault of its own (a fatal signal, a bad exit
/// code) count as faults; being killed from outside does not (decision 30), nor an end that a
/// poisoned request explains, nor hanging: a child that is lost and stays away is killed, and so is
/// one that is stopped, long before its heartbeats are missed. `close` ends all children, with
/// SIGTERM, then SIGKILL, and answers how many had to be killed; it blocks for `grace` at most.
/// Must be spawned detached: the kernel ends a child when the *thread* that started it ends
/// (PR_SET_PDEATHSIG).
child_keeper_actor::behavior_type
child_keeper(child_keeper_actor::stateful_pointer<child_keeper_state> self,
             child_keeper_config config);

} // namespace lamella::actors
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(lamella::actors::child_keeper_config)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(lamella::actors::worker_news)
