/// Which peers a worker hears over the data plane.
#pragma once

#include "actors/worker/worker.hpp"

namespace lamella::actors {

/// Asks those peers from now on, if the order names them, and tells what has come of asking.
watch_report on_watch(worker_state& st, const watch_order& x,
                      net::peer_reach::clock::time_point now);

} // namespace lamella::actors
