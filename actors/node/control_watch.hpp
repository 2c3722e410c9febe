/// CONTROL WATCH: whether the threads that messages and control links need still run.
#pragma once

#include "actors/shared/health.hpp"

#include <caf/all.hpp>

#include <memory>

namespace lamella::actors {

/// Beats `health->control` every second: from the thread of the control links where the process has
/// any, else from its own. A handler of that thread that never returns ends the beats, as does a
/// scheduler without a free thread. `health` must not be null.
caf::behavior control_watch(caf::event_based_actor* self, std::shared_ptr<health_board> health);

} // namespace lamella::actors
