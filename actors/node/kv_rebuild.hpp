/// The KV of a lost shard from what the others and their parity hold (decision 23; reliability A6).
#pragma once

#include "actors/node/pipeline.hpp"

#include <functional>

namespace lamella::actors {

/// Before an epoch serves: rebuilds the member that lacks what the others have, where that is one.
/// `parts.parity` knows afterwards which KV is lost for good, and `parts.base.by_parity` whether
/// some would have been. Goes on where a rebuild before was interrupted, when the same worker is
/// there with what it had then. Calls `done` once, on the thread of `self`. Moves (shards) * (KV in
/// use of a shard) bytes; nothing else runs meanwhile.
void fill_by_parity(caf::event_based_actor* self, pipeline_parts& parts,
                    const epoch_members& members, std::function<void()> done);

} // namespace lamella::actors
