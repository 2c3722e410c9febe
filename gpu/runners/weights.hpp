/// The weights of a program in a device's memory, packed for its kernel set.
#pragma once

#include "gpu/device.hpp"
#include "model/program/program.hpp"
#include "model/tensor.hpp"

#include <functional>
#include <memory>
#include <span>
#include <vector>

namespace lamella::gpu {

/// Where a weight comes from: the view of its tensor in the file.
using weight_source = std::function<const model::tensor_view&(const model::weight_use&)>;

/// One packed copy, shared by all replicas of a process.
class packed_weights {
public:
  /// Packs every weight of the program, of those that are split the share of `rank`; vectors become
  /// fp32. `progress` is called with bytes done and bytes in all. Cost: one pass over the file on
  /// all threads of the device.
  packed_weights(const model::model_program& program, const weight_source& source, device& where,
                 const std::function<void(uint64_t, uint64_t)>& progress, uint32_t rank = 0);

  const packed_matrix& matrix(model::weight_id id) const { return matrices_[id]; }

  /// A weight of one row as fp32, in device memory.
  const float* vector(model::weight_id id) const { return vectors_[id]; }

  uint64_t bytes() const { return memory_->size(); }

private:
  std::unique_ptr<memory> memory_;
  std::vector<packed_matrix> matrices_; ///< by weight_id; empty for vectors
  std::vector<const float*> vectors_;   ///< by weight_id; null for matrices
};

} // namespace lamella::gpu
