/// How MEMBERSHIP learns that a worker whose control link lives is not heard over the data plane:
/// workers ask each other, and it asks them what has come of it
/// (scheduler/membership/reach_book.hpp). Who is at fault is fenced: it has no part until all hear
/// it again.
#pragma once

#include "actors/membership/membership.hpp"

#include <functional>
#include <string>

namespace lamella::actors {

/// What comes of it.
struct reach_verdicts {
  std::function<void(const scheduler::seat&)> trust; ///< it may have a part
  std::function<void(const scheduler::seat&, const std::string& reason)> fence;
  /// It has been fenced for long: perhaps another process does better.
  std::function<void(const scheduler::seat&, const std::string& reason)> send_away;
};

/// From the start.
void begin_ticking(membership_self::stateful_pointer<membership_state> self);

/// A worker has loaded what it needs. It is trusted when all others hear it; where data planes
/// cannot ask, at once.
void begin_watching(membership_self::stateful_pointer<membership_state> self,
                    const membership_state::member& m, const reach_verdicts& verdicts);

/// That worker is gone.
void stop_watching(membership_self::stateful_pointer<membership_state> self,
                   const membership_state::member& gone);

/// One look at all members; the next one follows. Ticks that are not the newest are ignored.
void watch_members(membership_self::stateful_pointer<membership_state> self, uint64_t tick,
                   const reach_verdicts& verdicts);

} // namespace lamella::actors
