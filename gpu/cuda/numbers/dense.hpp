/// Dense 16-bit matrices: the form in which weights and the activations of matmuls lie on a CUDA
/// device.
#pragma once

#include "model/tensor.hpp"

#include <cstddef>
#include <cstdint>

namespace lamella::gpu::cuda {

/// Elements of a dense matrix. f16 carries 11 bits up to 65504, bf16 8 bits of any fp32 size.
enum class dense_type : uint8_t { f16, bf16 };

/// What weights of a file become. Quantised blocks and F32 become f16: values of models are far
/// below 65504 and f16 keeps eight times more of them than bf16 does. BF16 stays, exactly: its
/// range may be needed.
constexpr dense_type dense_type_of(model::tensor_type type) {
  return type == model::tensor_type::bf16 ? dense_type::bf16 : dense_type::f16;
}

/// A weight matrix [outputs, inputs], row-major without gaps, in device memory. Not owning.
struct dense_matrix {
  dense_type type = dense_type::f16;
  uint32_t outputs = 0;       ///< N
  uint32_t inputs = 0;        ///< K, a multiple of 8
  const void* data = nullptr; ///< 16-byte aligned
};

constexpr size_t dense_bytes(uint64_t outputs, uint64_t inputs) { return outputs * inputs * 2; }

} // namespace lamella::gpu::cuda
