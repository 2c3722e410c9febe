/// How long an iteration takes when several batches share replicas and attention devices.
#pragma once

#include "scheduler/rotation.hpp"

#include <cstdint>
#include <span>

namespace lamella::scheduler {

/// What one iteration of one batch needs, in seconds, all layers together.
struct iteration_times {
  double model = 0;        ///< occupies a replica
  double attention = 0;    ///< occupies the attention devices
  double network = 0;      ///< on the way between them
  double hidden = 0;       ///< of model and network, behind attention (L-M15)
  double host = 0;         ///< between two iterations; other batches run meanwhile
  double compute_nics = 0; ///< of network, occupies the NICs of a replica
  double memory_nics = 0;  ///< of network, occupies those of the attention devices
  double stage = 0;        ///< of model, occupies the fullest stage; 0: a replica is one stage

  double busiest() const { return stage > 0 ? stage : model; }

  /// With nobody else around.
  double alone() const { return model + attention + network - hidden + host; }
};

/// The closed form: a batch cannot be faster than alone, nor than the replica it runs on (all of
/// them, if the batches rotate; of several stages the fullest), the attention devices or the NICs
/// of either can serve everybody once. Exact for equal batches; `batch` is its index in `all`.
/// O(n).
double iteration_s(std::span<const iteration_times> all, uint32_t batch, uint32_t replicas,
                   pipeline_kind kind);

/// The same found by playing `iterations` iterations layer by layer, each resource first come first
/// served: the mean time of one iteration of all batches, and how long replicas were busy. With
/// several `stages` each replica's layers are divided over so many places (V-M04).
struct staggered_run {
  double iteration_s = 0;
  double replica_busy = 0;   ///< share of time, mean of all replicas
  double attention_busy = 0; ///< share of time
};
staggered_run play_staggered(std::span<const iteration_times> all, uint32_t replicas,
                             pipeline_kind kind, uint32_t layers, uint32_t iterations,
                             uint32_t stages = 1);

} // namespace lamella::scheduler
