/// Changes of the pools' sizes, and draining workers.
#pragma once

#include "actors/membership/membership_state.hpp"

#include <functional>

namespace lamella::actors {

/// What MEMBERSHIP does with a worker, or when a better epoch may be possible.
struct scale_effects {
  std::function<void(const scheduler::seat&, const std::string& reason)> send_away;
  std::function<void(const std::string& reason)> consider;
};

/// One change at a time; a second one is refused with the reason, as is an impossible size.
caf::result<pool_change> on_resize(membership_self::stateful_pointer<membership_state> self,
                                   const pool_resize& x, const scale_effects& effects);

caf::result<pool_change> on_drain(membership_self::stateful_pointer<membership_state> self,
                                  const worker_drain& x, const scale_effects& effects);

/// Opens an epoch in which sequences move between slot tables, unless a change is under way.
void on_balance(membership_self::stateful_pointer<membership_state> self, const pool_balance& x,
                const scale_effects& effects);

/// A pool follows the workers that join within other bounds, or not any more.
void on_bounds(membership_state& st, const pool_bounds& x);

/// A worker has come for which the pool has no seat. Gives it one where the pool may grow, or has
/// become smaller by a worker that was told to stop: one that is started again comes back.
bool grow_for(membership_self::stateful_pointer<membership_state> self, scheduler::worker_role role,
              const scale_effects& effects);

/// The pipeline has moved: seats and workers that are not needed any more go.
void finish_change(membership_self::stateful_pointer<membership_state> self,
                   const scale_effects& effects);

/// Finishes a change that an epoch after a loss has done; rolls one back whose workers have not
/// come in time, and gives up a drain that nobody has made possible in time.
void watch_change(membership_self::stateful_pointer<membership_state> self,
                  const scale_effects& effects);

} // namespace lamella::actors
