/// What every part of a LANE calls when something has changed.
#pragma once

#include "actors/lane/lane_state.hpp"

namespace lamella::actors {

/// Does whatever can be done now: seats leave and are taken, an iteration is launched, a handing
/// over ends.
void pump(lane_ptr self);

/// Ends the lane; nothing is started any more.
void end_lane(lane_ptr self, caf::error reason);

} // namespace lamella::actors
