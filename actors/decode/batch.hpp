/// BATCH: continuous batching, one iteration after another (V-M14, V-M15).
#pragma once

#include "actors/decode/batch_state.hpp"

namespace lamella::actors {

/// Requests join and leave between iterations. While the batch composition is unchanged and no row
/// depends on the previously sampled token, the next iteration is launched before this one has
/// replied, so that devices never wait for an actor (decision 20). A sequence without its token
/// mask skips iterations until the mask maker replies; the others go on. While lost KV is
/// recomputed on the same processors, the batch rests between iterations.
batch_actor::behavior_type batch(batch_actor::stateful_pointer<batch_state> self,
                                 batch_config config);

} // namespace lamella::actors
