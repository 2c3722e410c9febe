/// LANE: launches the iterations of one stream, one after another (V-M14, V-M15; V-M16).
#pragma once

#include "actors/lane/lane_state.hpp"

namespace lamella::actors {

/// With `tokens` a lane is a BATCH: requests join and leave between iterations, continuously. While
/// the batch composition is unchanged and no row needs the previously sampled token outside the
/// device (as penalties, formats and `min_tokens` do), the next iteration is launched before this
/// one has replied, so that devices never wait for an actor (decision 20). A sequence without its
/// token mask skips iterations until the mask maker replies; the others go on. While lost KV is
/// recomputed on the same processors, the batch rests between iterations.
///
/// With `prompts` it is a PREFILL WORKER: it cuts prompts into chunks and samples their first
/// tokens. Without own KV, the shards are those of the pool, and K and V are sent to them directly;
/// with own KV, the shard is its own, and the pool's shards pull (decision 26).
///
/// With both, its launches are mixed: rows of all sequences that decode, and pieces of prompts
/// (S-M02). Nothing of a failed iteration counts. It runs again from the committed tokens, and
/// writes the same slots with the same values.
lane_actor::behavior_type lane(lane_ptr self, lane_config config);

} // namespace lamella::actors
