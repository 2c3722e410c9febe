/// Attention cells that come while a service runs.
#pragma once

#include "actors/membership/membership_state.hpp"

namespace lamella::actors {

/// Knows new cells, and those without members by their new settings, from here on: they have no
/// members until somebody changes their size. Refused while a pool changes its size, and where a
/// cell that has members would get other settings or other seats. A pool without cells, by heads,
/// is the first of them from then on.
caf::result<bool> on_cells(membership_state& st, const cell_roster& x);

} // namespace lamella::actors
