/// How many memory devices, and how many batches (L-M19, V-M17).
#pragma once

#include "scheduler/planner/decode_design.hpp"

#include <cstdint>

namespace lamella::scheduler {

/// The number of memory devices at which one batch's attention takes as long as a replica's turn,
/// t_a = t_m / (n - 1) (L-M19; Lamina 4.3): the one that comes nearest among those that the KV
/// heads can be divided over, at most `most`. `rows` and `context` are of one batch. `design` gives
/// the devices, n > 1 and the partition; its own count of memory devices does not matter.
uint32_t memory_devices_for(const decode_design& design, const cost_model& cost, double rows,
                            double context, uint32_t most);

/// A batch for each replica, or one more than there are replicas (or stages): whichever gives more
/// tokens per second when `rows` requests with `context` tokens are there in all. Splitting few
/// requests into batches reads the weights once for each (V-M17: more batches pay from some 128
/// requests on). The rule of `batching.pipeline: auto` (scheduler/times/pipeline_choice.hpp) with
/// the times of the cost model.
uint32_t batches_for(const decode_design& design, const cost_model& cost, double rows,
                     double context);

} // namespace lamella::scheduler
