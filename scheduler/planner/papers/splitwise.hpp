/// Phase splitting: prompts on some machines, tokens on others, a mixed pool between (Splitwise
/// IV).
#pragma once

#include "scheduler/planner/papers/splitwise_design.hpp"

namespace lamella::scheduler {

/// Runs the trace at its own arrivals. Every request ends.
splitwise_result simulate_splitwise(const splitwise_design& design, const machine_kind& reference,
                                    const request_trace& trace, const splitwise_options& options);

/// Do two minutes of Poisson arrivals at `rate`, with the trace's sizes, keep all nine SLOs?
bool keeps_slo(const splitwise_design& design, const machine_kind& reference,
               const request_trace& sizes, const splitwise_options& options, uint64_t seed,
               double rate);

/// The highest rate, within 1 %, at which two minutes of Poisson arrivals with the trace's sizes
/// meet all nine SLOs (S-M20, S-M22). 0 when even the lowest does not.
double highest_rate(const splitwise_design& design, const machine_kind& reference,
                    const request_trace& sizes, const splitwise_options& options, uint64_t seed);

} // namespace lamella::scheduler
