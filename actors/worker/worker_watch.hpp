/// Reachability of peers of a worker over the data plane.
#pragma once

#include "actors/protocol/actors.hpp"
#include "actors/worker/worker_state.hpp"

namespace lamella::actors {

/// Probes those peers from now on, if the order names them, and returns the results.
watch_report on_watch(worker_state& st, const watch_order& x,
                      net::peer_reach::clock::time_point now);

} // namespace lamella::actors
