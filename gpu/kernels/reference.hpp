/// The attention steps of the reference set, and how it reads and writes 16-bit elements.
#pragma once

#include "gpu/kernels/half.hpp"
#include "gpu/kernels/operators.hpp"

#include <cstring>

namespace lamella::gpu {

inline float load_widened(half_type type, const std::byte* p) {
  return type == half_type::f32 ? load_as<float>(p) : from_half(load_as<uint16_t>(p));
}

inline void store_rounded(half_type type, float value, std::byte* p) {
  if (type == half_type::f32) {
    std::memcpy(p, &value, sizeof value);
  } else {
    auto h = to_half(value);
    std::memcpy(p, &h, sizeof h);
  }
}

void reference_attend_previous(const attention_args& args, kernel_context context);
void reference_append_kv(const attention_args& args, kernel_context context);
void reference_attend_new(const attention_args& args, kernel_context context);

} // namespace lamella::gpu
