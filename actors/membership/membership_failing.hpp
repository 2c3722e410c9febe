/// Seats whose processes keep crashing: reported, and not waited for.
#pragma once

#include "actors/membership/membership_state.hpp"

#include <set>

namespace lamella::actors {

/// Handles a crash report of a child keeper. Calls `on_hopeless` where no epoch was open yet and
/// none can be opened.
void note_failing(membership_state& st, const seat_failing& x);

/// That worker serves: its seat counts as healthy again.
void note_serving(membership_state& st, const membership_state::member& m);

std::set<scheduler::seat> failing_seats(const membership_state& st);

/// Whether the first epoch may be opened with the workers that are ready.
bool may_begin(const membership_state& st);

} // namespace lamella::actors
