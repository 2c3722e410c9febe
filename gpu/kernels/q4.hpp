/// K and V of a head in four bits: the head is rotated, and each 32 elements of that have a scale d
/// and a least value m in bf16, value = d * q + m with q of 0 to 15.
///
/// The rotation is a Hadamard transform, orthonormal and its own inverse, within blocks of the
/// largest power of two that divides D, 128 at most. It spreads what a few elements of K have more
/// than all others, which would take the scale from those. Products of rotated Q with rotated K are
/// those of Q with K; attention adds up rotated V and turns the sum back.
///
/// Scale and least value are those of the group's own range, so a row depends on nothing but
/// itself, and a rotated element is off by at most d / 2, and by what rounding m and d to bf16
/// leaves outside of the range. The bytes are the same on every device. Where they lie:
/// head_bytes_of (operators.hpp). Internal linkage, for the reason given in half.hpp.
#pragma once

#include "gpu/kernels/half.hpp"
#include "gpu/kernels/operators.hpp"

#include <cstddef>
#include <cstdint>

namespace lamella::gpu {
namespace {

constexpr uint32_t q4_group = 32;

/// Elements of a block of the rotation.
constexpr uint32_t q4_block(uint32_t dim) {
  const auto block = dim & (~dim + 1);
  return block < 128 ? block : 128;
}

/// Rotates the blocks of `count` elements, or turns them back. Cost: log2(block) sums per element.
inline void q4_rotate(float* x, uint32_t count, uint32_t block) {
  float factor = 1;
  for (uint32_t i = block; i > 1; i /= 2) factor *= 0.70710678f;
  for (uint32_t j = 0; j < count; ++j) x[j] *= factor;
  for (uint32_t half = 1; half < block; half *= 2)
    for (uint32_t first = 0; first < count; first += 2 * half)
      for (uint32_t j = first; j < first + half; ++j) {
        const auto a = x[j], b = x[j + half];
        x[j] = a + b;
        x[j + half] = a - b;
      }
}

/// Bytes from the start of a head to its scales and least values: 2 + 2 bytes per group.
constexpr size_t q4_scales_at(uint32_t dim) {
  return (size_t{dim} + q4_group - 1) / q4_group * (q4_group / 2);
}

/// Of one group: value = scale * q + least.
struct q4_factors {
  float scale, least;
};

inline q4_factors q4_factors_of(const std::byte* scales, uint32_t group) {
  const auto both = load_as<uint32_t>(scales + size_t{group} * 4);
  return {std::bit_cast<float>(both << 16), std::bit_cast<float>(both & 0xffff0000u)};
}

/// One code: of the 16 bytes of a group, the low halves are its first 16 elements.
inline float q4_code(const std::byte* head, uint32_t element) {
  const auto in_group = element % q4_group;
  const auto byte =
      static_cast<uint32_t>(head[element / q4_group * (q4_group / 2) + in_group % 16]);
  return static_cast<float>(in_group < 16 ? byte & 15u : byte >> 4);
}

/// Scale and least value of `count` finite elements, as they are stored.
inline q4_factors q4_factors_for(const float* x, uint32_t count) {
  float least = x[0], highest = x[0];
  for (uint32_t j = 1; j < count; ++j) {
    least = x[j] < least ? x[j] : least;
    highest = x[j] > highest ? x[j] : highest;
  }
  return {from_bf16(to_bf16((highest - least) / 15.0f)), from_bf16(to_bf16(least))};
}

/// The nearest code, ties to even: adding and taking away 1.5 * 2^23 leaves an integer.
inline uint32_t q4_rounded(float x, const q4_factors& factors, float inverse) {
  auto code = (x - factors.least) * inverse;
  code = code > 0.0f ? code : 0.0f;
  code = code < 15.0f ? code : 15.0f;
  return static_cast<uint32_t>(code + 0x1.8p23f - 0x1.8p23f);
}

/// One group, rotated. Below `flat` the inverse of a scale would overflow: the group then has its
/// least value throughout.
inline void q4_quantise_group(const float* x, uint32_t count, std::byte* codes, std::byte* scales) {
  constexpr float flat = 1e-30f;
  auto factors = q4_factors_for(x, count);
  const auto inverse = factors.scale < flat ? 0 : 1.0f / factors.scale;
  if (inverse == 0) factors.scale = 0;
  const uint16_t stored[]{to_bf16(factors.scale), to_bf16(factors.least)};
  std::memcpy(scales, stored, sizeof stored);
  for (uint32_t j = 0; j < count; ++j)
    codes[j % 16] |= static_cast<std::byte>(q4_rounded(x[j], factors, inverse) << (j < 16 ? 0 : 4));
}

/// A head with an element that is not below 2^126, rotated, has no finite value, so that a broken
/// row is seen at its end.
inline void quantise_head_to_4_bits(const float* x, uint32_t dim, std::byte* head) {
  std::memset(head, 0, head_bytes_of(half_type::q4, dim));
  const auto block = q4_block(dim);
  const auto at_once = block > q4_group ? block : q4_group;
  auto* scales = head + q4_scales_at(dim);
  constexpr auto too_large = std::bit_cast<uint32_t>(0x1p126f); // a range fits fp32
  float rotated[128];
  bool finite = true;
  for (uint32_t first = 0; first < dim; first += at_once) {
    const auto count = dim - first < at_once ? dim - first : at_once;
    std::memcpy(rotated, x + first, size_t{count} * 4);
    q4_rotate(rotated, count, block);
    for (uint32_t j = 0; j < count; ++j)
      finite = finite && (std::bit_cast<uint32_t>(rotated[j]) & 0x7fffffffu) < too_large;
    if (!finite) break;
    for (uint32_t j = 0; j < count; j += q4_group, scales += 4)
      q4_quantise_group(rotated + j, count - j < q4_group ? count - j : q4_group,
                        head + (first + j) / 2, scales);
  }
  if (finite) return;
  std::memset(head, 0, head_bytes_of(half_type::q4, dim));
  const uint16_t broken[]{0x7fc0, 0}; // a scale that is no number
  for (uint32_t j = 0; j < dim; j += q4_group)
    std::memcpy(head + q4_scales_at(dim) + j / q4_group * 4, broken, sizeof broken);
}

} // namespace
} // namespace lamella::gpu
