/// Seats whose processes end again and again: told of, and not waited for.
#pragma once

#include "actors/membership/membership.hpp"

#include <set>

namespace lamella::actors {

/// The keeper of a seat's process says that it fails. Tells `on_hopeless` where no epoch was open
/// yet and none ever can be.
void note_failing(membership_state& st, const seat_failing& x);

/// That worker could serve: whatever was wrong with its seat is over.
void note_serving(membership_state& st, const membership_state::member& m);

std::set<scheduler::seat> failing_seats(const membership_state& st);

/// Whether the first epoch may be opened with the workers that are ready.
bool may_begin(const membership_state& st);

} // namespace lamella::actors
