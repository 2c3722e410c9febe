/// How MEMBERSHIP learns that a worker says nothing: it asks, and asks once more (reliability A1).
#pragma once

#include "actors/membership/membership.hpp"

#include <functional>
#include <string>

namespace lamella::actors {

/// Asks every worker process with a part in the open epoch how it is, and `give_up`s those that do
/// not answer twice in their time. What is asked already is not asked again. While an epoch is
/// being opened nobody is asked: its orders have a deadline of their own.
void probe_workers(
    membership_self::stateful_pointer<membership_state> self,
    const std::function<void(const scheduler::seat&, const std::string& reason)>& give_up);

/// A process takes a seat: one that was given up for its silence was alive.
void note_return(membership_self::stateful_pointer<membership_state> self,
                 const membership_state::member& m);

} // namespace lamella::actors
