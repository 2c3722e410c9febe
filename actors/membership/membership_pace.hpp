/// How MEMBERSHIP learns who is late but correct: it asks its workers what their devices have done.
#pragma once

#include "actors/membership/membership.hpp"

namespace lamella::actors {

/// Of workers that may have a part: they have loaded what they need, and others hear them.
std::set<scheduler::seat> ready_seats(const membership_state& st);

/// A worker has answered what it was asked.
void note_report(membership_self::stateful_pointer<membership_state> self,
                 const membership_state::member& m, const worker_peers& x);

/// Asks all workers. When each has answered, or has not in time, `tell` gets those that have become
/// slow or well again since the look before.
void look_at_pace(membership_self::stateful_pointer<membership_state> self,
                  std::function<void(const scheduler::slow_workers::change&)> tell);

/// Could somebody who is not slow do the part of that seat, at once and with no KV computed again?
bool has_substitute(const membership_state& st, const scheduler::seat& who);

/// The next epoch of the workers that are ready, with slow ones only where it needs them.
std::optional<scheduler::epoch_plan> next_plan(const membership_state& st);

} // namespace lamella::actors
