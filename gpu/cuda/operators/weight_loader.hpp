/// Weights from a mapped file into device memory.
#pragma once

#include "base/team.hpp"
#include "model/tensor.hpp"

#include <cstddef>
#include <cstdint>

namespace lamella::gpu::cuda {

/// Bytes of a weight matrix on the device: dense 16-bit rows. Throws std::runtime_error for shapes
/// the matmuls cannot run.
size_t dense_weight_bytes(model::tensor_type type, uint32_t outputs, uint32_t inputs);

/// Reads the rows with all threads of the team into pinned memory, copies and unpacks them, two
/// pieces at a time, so that file, bus and device work at once. `out` tells the device. Returns
/// when the matrix is there. Throws cuda_error.
void load_weight(model::tensor_type type, const std::byte* rows, uint32_t outputs, uint32_t inputs,
                 std::byte* out, team& workers);

} // namespace lamella::gpu::cuda
