/// The closed form of an iteration's time when several batches share replicas and attention devices
/// (Lamina 4.3).
#pragma once

#include "scheduler/rotation.hpp"

#include <algorithm>
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

/// A batch cannot be faster than alone, nor than the replica it runs on (all of them, if the
/// batches rotate; of several stages the fullest), the attention devices or the NICs of either can
/// serve everybody once. Exact for equal batches; `batch` is its index in `all`. O(n).
inline double iteration_s(std::span<const iteration_times> all, uint32_t batch, uint32_t replicas,
                          pipeline_kind kind) {
  double model = 0, attention = 0, compute_nics = 0, memory_nics = 0;
  for (uint32_t j = 0; j < all.size(); ++j) {
    const bool rotates = kind == pipeline_kind::rotational;
    if (rotates || j % replicas == batch % replicas) {
      const auto part = rotates ? 1.0 / replicas : 1.0;
      model += all[j].busiest() * part;
      compute_nics += all[j].compute_nics * part;
    }
    attention += all[j].attention;
    memory_nics += all[j].memory_nics;
  }
  return std::max({all[batch].alone(), model, attention, compute_nics, memory_nics});
}

} // namespace lamella::scheduler
