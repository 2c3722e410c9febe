/// KV that was lost and is computed again, as a prefill worker sees it (L-M26): who is told, what
/// is counted, what an operator reads.
#pragma once

#include "actors/prefill/prefill_worker.hpp"

namespace lamella::actors {

/// A job that is a rebuild has come, and will end in rebuild_ended(): the batches beside this
/// worker know while there is one.
void rebuild_began(prefill_ptr self, prefill_worker_state::job& j);

/// It was told, has failed, or is not wanted any more.
void rebuild_ended(prefill_ptr self, const prefill_worker_state::job& j);

/// Says what waits, and how long it will take at the rate of the iteration that has just ended, of
/// so many tokens; once for each time that KV is lost.
void announce_rebuild(prefill_worker_state& st, uint64_t tokens, std::chrono::nanoseconds took);

} // namespace lamella::actors
