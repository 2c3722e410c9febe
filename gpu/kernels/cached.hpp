/// Sixteen elements of what a cache holds of a head, in fp32. Included after `lanes`.
#pragma once

#include "gpu/kernels/operators.hpp"
#include "gpu/kernels/q4.hpp"
#include "gpu/kernels/q8.hpp"

namespace lamella::gpu {
namespace {

/// Bytes from the start of a head to its scales; 0: it has none.
constexpr size_t scales_at(half_type type, uint32_t dim) {
  return type == half_type::q8 ? q8_scale_at(dim) : type == half_type::q4 ? q4_scales_at(dim) : 0;
}

/// The elements from 16 * `index` on of the K or V at `head`; of q4 as they are rotated (q4.hpp).
/// `scales`: as scales_at() has it.
template <half_type type>
[[gnu::always_inline]] inline lanes::vec load_cached(const std::byte* head, size_t index,
                                                     size_t scales) {
  if constexpr (type == half_type::q4) {
    const auto group = index / 2;
    const auto* codes = head + group * (q4_group / 2);
    const auto* factors = head + scales + group * 4;
    return lanes::fma(index % 2 == 0 ? lanes::load_low_u4(codes) : lanes::load_high_u4(codes),
                      lanes::first_bf16(factors), lanes::second_bf16(factors));
  } else if constexpr (type == half_type::q8) {
    return lanes::mul(lanes::load_i8(head + index * 16), lanes::set(q8_scale_of(head, scales)));
  } else if constexpr (type == half_type::f32) {
    return lanes::load(reinterpret_cast<const float*>(head) + index * 16);
  } else if constexpr (type == half_type::f16) {
    return lanes::load_f16(head + index * 32);
  } else {
    return lanes::load_bf16(head + index * 32);
  }
}

} // namespace
} // namespace lamella::gpu
