/// Where a kernel writes a 16-bit copy of its output.
#pragma once

#include "gpu/cuda/numbers/dense.hpp"

namespace lamella::gpu::cuda {

/// A second, 16-bit copy of an output for the next product, written in the same pass (saturating,
/// see halves.cuh), or none.
struct dense_copy {
  void* out = nullptr; ///< [M, width], 16-byte aligned
  dense_type type = dense_type::f16;
};

} // namespace lamella::gpu::cuda
