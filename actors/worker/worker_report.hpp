/// Report of a worker on its links and its device, since its start.
#pragma once

#include "actors/protocol/actors.hpp"
#include "actors/worker/worker_state.hpp"

namespace lamella::actors {

/// The peers of this seat with transports; the work of its device; dropped frames.
worker_peers peers_of(const worker_state& st);

/// Accumulates the counters of the links of an epoch before they are destroyed.
void keep_counts(worker_state& st, const worker_epoch& at);

} // namespace lamella::actors
