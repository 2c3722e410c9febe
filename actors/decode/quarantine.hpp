/// How the GLOBAL SCHEDULER runs suspects apart from the others (reliability A8): on the last
/// replica, while the others run on the rest; where that is not apart enough, the others wait.
#pragma once

#include "actors/decode/global_scheduler.hpp"

namespace lamella::actors {

/// May it be started at all now? Who may not is held until it may.
bool must_wait(const global_scheduler_state& st, sequence_id first);

/// It is known to end workers.
bool is_poisonous(const global_scheduler_state& st, sequence_id first);

/// The load of the batches as the entry sees it: those that it must not join are full. Nothing when
/// it must wait until others have left the place where it is to run.
std::optional<std::vector<uint64_t>> load_for(const global_scheduler_state& st, sequence_id first);

/// The prefill worker whose turn it is, among those that are apart from the others where there are
/// such; `suffix`: the beginning of the prompt is in the prefix cache.
uint32_t prefill_worker_for(global_scheduler_state& st, sequence_id first, bool suffix);

/// Whoever runs where it may not steps back, with its KV; true when there is somebody.
bool make_room(scheduler_ptr self);

} // namespace lamella::actors
