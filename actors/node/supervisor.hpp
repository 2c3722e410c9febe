/// SUPERVISOR: restart or escalate. The policy is pure; the supervisor only obeys.
#pragma once

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

/// What a child is.
struct child_facts {
  std::string name; ///< of its class
  std::string role; ///< whose work it does: model, attention or prefill; may be empty
};

/// Children that share a fate, and how they are made.
struct subtree {
  std::string name;
  /// Gets ready what `start` needs, then calls `ready` on the supervisor's thread: with nothing, or
  /// with why it cannot be had now (it is tried again after a delay and counts for nothing). May be
  /// empty.
  std::function<void(caf::event_based_actor*,
                     std::function<void(std::optional<std::string>)> ready)>
      prepare;
  /// Starts all children and returns them in the order of their start. Called again, with the next
  /// number, after one of them has ended. May throw; that counts as an end.
  std::function<std::vector<caf::strong_actor_ptr>(caf::event_based_actor*, uint64_t generation)>
      start;
  /// May be empty.
  std::function<child_facts(const caf::actor_addr& child)> facts_of;
  /// Something has ended and will be started again, or is given up. `role`: of the worker that was
  /// lost, or of the child that has ended; may be empty. `cause`: nothing where a worker was lost:
  /// whoever watches the workers counts that, and a child that met it is no second loss.
  std::function<void(bool given_up, const std::string& role,
                     std::optional<net::failover_cause> cause)>
      on_trouble;
  /// What an end of a child by its own fault means for the restarts that are allowed. May be empty:
  /// each one counts.
  std::function<suspect_board::budget()> on_fault;
  /// Where `on_fault` is empty: attempts are spent (`ec::attempts_spent`), whose devices are
  /// others'. May be empty.
  std::function<void()> on_spent;
  /// The supervisor ends: so must what outlives its children. May be empty.
  std::function<void()> on_stop;
};

struct supervisor_state {
  subtree what;
  std::optional<scheduler::restart_policy> policy;
  std::vector<caf::strong_actor_ptr> children;
  uint64_t generation = 0;
  uint64_t preparation = 0; ///< the newest one; answers to older ones are ignored
  uint64_t restart = 0;     ///< the newest one that was put off; older ones are ignored
  bool stopping = false;
  bool waiting = false; ///< between an end and the restart
  const char* name = "supervisor";
};

/// One for all: when a child ends, the others are ended and all are started anew, with a growing
/// delay; more than the policy allows, and the supervisor ends itself with the reason. `epoch_lost`
/// starts all anew as well, at once, and counts for nothing (decision 30). `status` is answered
/// with a supervisor_status, its children by kind. On an exit
/// message the children go first. Keep a strong handle to it: CAF drops an actor nobody holds.
caf::behavior supervisor(caf::stateful_actor<supervisor_state>* self, subtree what,
                         scheduler::restart_policy policy);

} // namespace lamella::actors
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(lamella::actors::subtree)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(lamella::scheduler::restart_policy)
