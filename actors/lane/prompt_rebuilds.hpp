/// Recomputation of lost KV in a prefill worker (L-M26): notifications, metrics and log lines.
#pragma once

#include "actors/lane/lane_state.hpp"
#include "actors/protocol/prefills.hpp"

namespace lamella::actors {

/// A rebuild job was added, and will end with rebuild_ended(): batches on the same processors are
/// notified while there is one.
void rebuild_began(lane_ptr self, prompt_part::job& j);

/// The rebuild job was answered, failed or was cancelled.
void rebuild_ended(lane_ptr self, const prompt_part::job& j);

/// Logs the waiting work and its expected duration at the rate of the last iteration (`tokens` in
/// `took`); once per loss of KV.
void announce_rebuild(lane_state& st, uint64_t tokens, std::chrono::nanoseconds took);

} // namespace lamella::actors
