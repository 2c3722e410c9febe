/// WORKER: one seat, in a process of its own or in this one; rebuilds its replica or shard for
/// every epoch.
#pragma once

#include "actors/worker/worker_state.hpp"

namespace lamella::actors {

/// Terminates when its replica or shard fails (a failed device is not reused), when the shutdown of
/// an epoch hangs (`hang_limit`), and on worker_leave. An epoch is opened when nothing of the
/// previous one runs: a late write into a kept cache could hit a slot of another sequence.
traced_worker_actor::behavior_type worker(traced_worker_actor::stateful_pointer<worker_state> self,
                                          worker_config config);

} // namespace lamella::actors
