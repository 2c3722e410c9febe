/// KV that nobody runs on: of sequences that wait for a seat, for their reader, or until others
/// have been told apart from them. It costs nothing until somebody else wants its slots.
#pragma once

#include "actors/decode/global_scheduler.hpp"

namespace lamella::actors {

/// The head of the queue lacks slots: gives back the KV of the youngest sequence that is not about
/// to run; it computes it again. Where nobody runs who could give slots back, also of the youngest
/// one in the queue, or everybody would wait for everybody else.
void take_idle_kv(scheduler_ptr self, sequence_id head);

} // namespace lamella::actors
