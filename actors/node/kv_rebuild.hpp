/// Reconstruction of the KV of a lost shard from the others and their parity (decision 23;
/// reliability A6).
#pragma once

#include "actors/node/pipeline_parts.hpp"

#include <functional>

namespace lamella::actors {

/// Before an epoch serves: rebuilds in each cell the member that misses KV of the others, if it is
/// a single one. Afterwards `parts.parity` has the KV that is lost for good, and
/// `parts.base.by_parity` whether KV was reconstructed. Resumes an interrupted rebuild when the
/// same worker is back with the same memory. Calls `done` once, on the thread of `self`. Moves
/// (shards of the cell) * (KV in use of a shard) bytes; no decoding runs meanwhile. Cells are
/// rebuilt side by side.
void fill_by_parity(caf::event_based_actor* self, pipeline_parts& parts,
                    const epoch_members& members, std::function<void()> done);

} // namespace lamella::actors
