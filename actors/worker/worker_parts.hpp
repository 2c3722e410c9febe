/// What a WORKER makes for an epoch: its device, its caches, its part of the pipeline.
#pragma once

#include "actors/worker/worker_state.hpp"

namespace lamella::actors {

using worker_ptr = traced_worker_actor::stateful_pointer<worker_state>;

/// Before the first epoch. Throws std::exception with the reason.
void open_device(worker_state& st, const std::string& name);

/// Drops the KV that no open epoch uses.
void drop_caches(worker_state& st);

/// Streams of its device that this seat may use at once, in all open epochs.
size_t device_streams(const worker_state& st);

/// Connects an epoch and spawns the actors of this seat's part. Throws std::exception.
epoch_ready make_parts(worker_ptr self, worker_epoch& at);

} // namespace lamella::actors
