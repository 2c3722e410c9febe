/// Pipeline parallelism: a replica's layers in order over several stages, each of them as many
/// tensor-parallel devices with their own weights (V-M04).
#pragma once

#include <cstdint>

namespace lamella::scheduler {

/// The stage of a layer. Stages differ by one layer at most; the fuller ones come last.
constexpr uint32_t stage_of(uint32_t layer, uint32_t layers, uint32_t stages) {
  return static_cast<uint32_t>(uint64_t{layer} * stages / layers);
}

/// What the fullest stage has of all layers: of the weights, of the KV that lies beside them and of
/// the time of an iteration.
constexpr double fullest_stage(uint32_t layers, uint32_t stages) {
  const uint32_t of_fullest = (layers + stages - 1) / stages;
  return static_cast<double>(of_fullest) / layers;
}

} // namespace lamella::scheduler
