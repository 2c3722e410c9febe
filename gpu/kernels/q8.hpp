/// K and V of a head in eight bits: D values q and one scale d, value = d * q.
///
/// The scale is that of the largest element, d = max|x| / 127, so a row depends on nothing but
/// itself, and an element is off by at most d / 2. The bits are the same on every device. Where
/// they lie: head_bytes_of (operators.hpp). Internal linkage, for the reason given in half.hpp;
/// constexpr, so that device code calls the same lines.
#pragma once

#include "gpu/kernels/operators.hpp"

#include <bit>
#include <cstdint>
#include <cstring>
#include <limits>

namespace lamella::gpu {
namespace {

/// Of one head: value = scale * q, and q = round(x * inverse).
struct q8_factors {
  float scale, inverse;
};

/// From the bits of the largest |x|, as an integer larger than those of infinity for a NaN. A head
/// with an element that is not finite has no finite value, so that a broken row is seen at its end.
constexpr q8_factors q8_factors_of(uint32_t highest_bits) {
  if (highest_bits >= 0x7f800000u) return {std::bit_cast<float>(0x7fc00000u), 0};
  const auto highest = std::bit_cast<float>(highest_bits);
  // Below this 127 / highest would overflow; such a head is zero.
  if (highest < 1e-30f) return {0, 0};
  return {highest / 127.0f, 127.0f / highest};
}

/// x * inverse to the nearest integer, ties to even: adding and taking away 1.5 * 2^23 leaves one.
constexpr int32_t q8_rounded(float x, float inverse) {
  return static_cast<int32_t>(x * inverse + 0x1.8p23f - 0x1.8p23f);
}

/// Bytes from the start of a head to its scale.
constexpr size_t q8_scale_at(uint32_t dim) {
  return head_bytes_of(half_type::q8, dim) - sizeof(float);
}

inline float q8_scale_of(const std::byte* head, size_t scale_at) {
  float scale;
  std::memcpy(&scale, head + scale_at, sizeof scale);
  return scale;
}

inline void quantise_head(const float* x, uint32_t dim, std::byte* head) {
  uint32_t highest = 0;
  for (uint32_t j = 0; j < dim; ++j) {
    const auto bits = std::bit_cast<uint32_t>(x[j]) & 0x7fffffffu;
    highest = bits > highest ? bits : highest;
  }
  const auto factors = q8_factors_of(highest);
  const auto scale_at = q8_scale_at(dim);
  std::memset(head, 0, scale_at);
  std::memcpy(head + scale_at, &factors.scale, sizeof factors.scale);
  if (factors.inverse == 0) return;
  for (uint32_t j = 0; j < dim; ++j)
    head[j] = static_cast<std::byte>(q8_rounded(x[j], factors.inverse));
}

} // namespace
} // namespace lamella::gpu
