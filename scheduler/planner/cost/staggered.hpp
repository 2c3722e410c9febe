/// How long an iteration takes when several batches share replicas and attention devices, played.
#pragma once

#include "scheduler/times/iteration_times.hpp"

#include <cstdint>
#include <span>

namespace lamella::scheduler {

/// iteration_s() found by playing `iterations` iterations layer by layer, each resource first come
/// first served: the mean time of one iteration of all batches, and how long replicas were busy.
/// With several `stages` each replica's layers are divided over so many places (V-M04).
struct staggered_run {
  double iteration_s = 0;
  double replica_busy = 0;   ///< share of time, mean of all replicas
  double attention_busy = 0; ///< share of time
};
staggered_run play_staggered(std::span<const iteration_times> all, uint32_t replicas,
                             pipeline_kind kind, uint32_t layers, uint32_t iterations,
                             uint32_t stages = 1);

} // namespace lamella::scheduler
