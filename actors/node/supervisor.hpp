/// SUPERVISOR: restarts or escalates, as decided by a pure policy.
#pragma once

#include "actors/protocol/actors.hpp"
#include "actors/shared/child_facts.hpp"
#include "actors/shared/suspect_board.hpp"
#include "net/metrics/metrics.hpp"
#include "scheduler/membership/restart_policy.hpp"

#include <caf/all.hpp>

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace lamella::actors {

struct epoch_due;

/// What came of a new generation that was prepared beside the running one.
struct renewal {
  enum class outcome : uint8_t {
    taken,  ///< `children` have taken over
    stays,  ///< nothing has changed
    broken, ///< the present children serve no more: all start anew
  };
  outcome what = outcome::stays;
  std::vector<caf::strong_actor_ptr> children{};
  std::string reason{};
};

/// Children that are restarted together, and how they are created.
struct subtree {
  std::string name;
  /// Prepares the inputs of `start`, then calls `ready` on the supervisor's thread: with nothing,
  /// or with the reason of a failure (retried after a delay, without effect on the restart budget).
  /// May be empty.
  std::function<void(caf::event_based_actor*,
                     std::function<void(std::optional<std::string>)> ready)>
      prepare;
  /// Starts all children and returns them in the order of their start. Called again, with the next
  /// number, after one of them has failed. May throw; that counts as a failure.
  std::function<std::vector<caf::strong_actor_ptr>(caf::event_based_actor*, uint64_t generation)>
      start;
  /// Prepares a new generation of children while the present one runs, and starts it; then calls
  /// `done` on the supervisor's thread: with its children, which replace the present ones, or with
  /// the reason why these stay. Each step first asks `goes_on`: the present children may have ended
  /// meanwhile. What it returns is called when they have: it lets go what it has prepared. May be
  /// empty: a new generation then starts after the end of the present one.
  std::function<std::function<void()>(caf::event_based_actor*, uint64_t generation,
                                      std::function<bool()> goes_on,
                                      std::function<void(renewal)> done)>
      renew;
  /// May be empty.
  std::function<child_facts(const caf::actor_addr& child)> facts_of;
  /// A child failed or a worker was lost; restart or escalation follows. `role`: of the lost worker
  /// or the failed child; may be empty. `cause`: nothing where a worker was lost: MEMBERSHIP counts
  /// that, and a child that failed because of it is not a second loss.
  std::function<void(bool given_up, const std::string& role,
                     std::optional<net::failover_cause> cause)>
      on_trouble;
  /// Effect of a child's own fault on the restart budget. May be empty: each one counts.
  std::function<suspect_board::budget()> on_fault;
  /// Whether a child that finds a peer gone, or its retries exhausted (`ec::attempts_spent`), has
  /// ended for a WORKER's sake, of whom MEMBERSHIP tells. May be empty: it has not.
  std::function<bool()> blames_workers;
  /// It has, and its retries are exhausted. May be empty.
  std::function<void()> on_spent;
  /// The supervisor terminates: stop everything that outlives its children. May be empty.
  std::function<void()> on_stop;
};

struct supervisor_state {
  subtree what;
  std::optional<scheduler::restart_policy> policy;
  std::vector<caf::strong_actor_ptr> children;
  uint64_t generation = 0;
  uint64_t preparation = 0; ///< the newest preparation; replies to older ones are ignored
  uint64_t restart = 0;     ///< the newest delayed restart; older ones are ignored
  bool stopping = false;
  uint64_t renewing = 0; ///< the newest renewal; 0: none is under way
  uint64_t renewals = 0;
  std::function<void()> abandon;        ///< of the renewal under way
  std::shared_ptr<const epoch_due> due; ///< came while there was nothing to renew
  bool waiting = false;                 ///< between a failure and the restart
  const char* name = "supervisor";
};

/// One for all: when a child fails, the others are stopped and all are restarted, with a growing
/// delay; beyond the restart budget, the supervisor terminates with the reason. `epoch_lost`
/// restarts all as well, at once, without effect on the budget (decision 30). `epoch_due` has the
/// children renewed while they run; a failure meanwhile restarts all. `status` is answered
/// with a supervisor_status, its children by kind. On an exit message the children are stopped
/// first. Keep a strong handle to it: CAF destroys an actor without references.
caf::behavior supervisor(caf::stateful_actor<supervisor_state>* self, subtree what,
                         scheduler::restart_policy policy);

} // namespace lamella::actors
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(lamella::actors::subtree)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(lamella::scheduler::restart_policy)
