/// What a worker tells of its links and its device, since it began.
#pragma once

#include "actors/worker/worker.hpp"

namespace lamella::actors {

/// Every seat this one talks to, and how; what its device has done; the frames it did not take.
worker_peers peers_of(const worker_state& st);

/// Adds up what the links of an epoch have counted, before they go.
void keep_counts(worker_state& st);

} // namespace lamella::actors
