/// Seats whose processes keep crashing: reported, and not waited for.
#pragma once

#include "actors/membership/membership_state.hpp"

namespace lamella::actors {

/// Handles a crash report of a child keeper or of OWN SEATS. Calls `on_hopeless` where no epoch was
/// open yet and none can be opened, and where a seat of this process fails without which none can.
void note_failing(membership_state& st, const seat_failing& x);

/// That worker serves: its seat counts as healthy again.
void note_serving(membership_state& st, const membership_state::member& m);

} // namespace lamella::actors
