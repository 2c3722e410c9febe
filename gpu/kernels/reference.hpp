/// The attention steps of the reference set, and how it reads and writes elements.
#pragma once

#include "gpu/kernels/half.hpp"
#include "gpu/kernels/operators.hpp"
#include "gpu/kernels/q4.hpp"
#include "gpu/kernels/q8.hpp"

#include <cstring>

namespace lamella::gpu {

inline float load_widened(half_type type, const std::byte* p) {
  if (type == half_type::f32) return load_as<float>(p);
  const auto h = load_as<uint16_t>(p);
  return type == half_type::f16 ? from_half(h) : from_bf16(h);
}

inline void store_rounded(half_type type, float value, std::byte* p) {
  if (type == half_type::f32) {
    std::memcpy(p, &value, sizeof value);
  } else {
    auto h = type == half_type::f16 ? to_half(value) : to_bf16(value);
    std::memcpy(p, &h, sizeof h);
  }
}

/// A head as a cache holds it, in fp32.
inline void load_head(half_type type, const std::byte* head, uint32_t dim, float* out) {
  if (type == half_type::q4) {
    for (uint32_t j = 0; j < dim; ++j) {
      const auto [scale, least] = q4_factors_of(head + q4_scales_at(dim), j / q4_group);
      out[j] = scale * q4_code(head, j) + least;
    }
    return q4_rotate(out, dim, q4_block(dim));
  }
  const auto scale = type == half_type::q8 ? q8_scale_of(head, q8_scale_at(dim)) : 0;
  for (uint32_t j = 0; j < dim; ++j)
    out[j] = type == half_type::q8 ? scale * static_cast<float>(static_cast<int8_t>(head[j]))
                                   : load_widened(type, head + j * bytes_of(type));
}

/// And from fp32.
inline void store_head(half_type type, const float* x, uint32_t dim, std::byte* head) {
  if (type == half_type::q8) return quantise_head(x, dim, head);
  if (type == half_type::q4) return quantise_head_to_4_bits(x, dim, head);
  for (uint32_t j = 0; j < dim; ++j) store_rounded(type, x[j], head + j * bytes_of(type));
}

void reference_attend_previous(const attention_args& args, kernel_context context);
void reference_append_kv(const attention_args& args, kernel_context context);
void reference_attend_new(const attention_args& args, kernel_context context);

} // namespace lamella::gpu
