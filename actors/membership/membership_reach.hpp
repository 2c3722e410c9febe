/// Detection of data plane failures behind a live control link: workers probe each other and report
/// the results to MEMBERSHIP (scheduler/membership/reach_book.hpp). The worker at fault is fenced:
/// it has no part until all peers reach it again.
#pragma once

#include "actors/membership/membership_state.hpp"

#include <functional>
#include <string>

namespace lamella::actors {

/// Actions on the results.
struct reach_verdicts {
  std::function<void(const scheduler::seat&)> trust; ///< it may have a part
  std::function<void(const scheduler::seat&, const std::string& reason)> fence;
  /// It has been fenced for too long: another process may do better.
  std::function<void(const scheduler::seat&, const std::string& reason)> send_away;
};

/// From the start.
void begin_ticking(membership_self::stateful_pointer<membership_state> self);

/// A worker has finished loading. It is trusted when all peers reach it; at once where data planes
/// cannot probe.
void begin_watching(membership_self::stateful_pointer<membership_state> self,
                    const membership_state::member& m, const reach_verdicts& verdicts);

/// A worker that was declared dead for its silence is back, before `begin_watching`. It is fenced
/// for a rest that doubles each time, while the others serve: a control link that crawls must not
/// cost an epoch whenever it carries the few bytes of a join.
void rest_after_return(membership_self::stateful_pointer<membership_state> self,
                       membership_state::member& m);

/// That worker was lost.
void stop_watching(membership_self::stateful_pointer<membership_state> self,
                   const membership_state::member& gone);

/// One poll of all members; schedules the next one. Stale ticks are ignored.
void watch_members(membership_self::stateful_pointer<membership_state> self, uint64_t tick,
                   const reach_verdicts& verdicts);

} // namespace lamella::actors
