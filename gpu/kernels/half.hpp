/// 16-bit floats, one at a time, in plain integer arithmetic.
///
/// Everything here has internal linkage: the kernel sets are compiled with different
/// instruction-set flags, and the linker must never keep the copy of one for the other.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>

namespace lamella::gpu {
namespace {

template <class T> inline T load_as(const void* p) {
  T value;
  std::memcpy(&value, p, sizeof value);
  return value;
}

inline float from_bf16(uint16_t h) { return std::bit_cast<float>(uint32_t{h} << 16); }

/// Rounds to nearest, ties to even; the last 2^-9 of the range becomes infinite; NaN stays a
/// (quiet) NaN.
inline uint16_t to_bf16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  const bool number = (bits & 0x7fffffffu) <= 0x7f800000u;
  const auto rounded = number ? bits + 0x7fffu + (bits >> 16 & 1u) : bits | 0x400000u;
  return static_cast<uint16_t>(rounded >> 16);
}

inline float from_half(uint16_t h) {
  uint32_t sign = uint32_t{h & 0x8000u} << 16;
  uint32_t rest = h & 0x7fffu;
  if (rest >= 0x7c00u) return std::bit_cast<float>(sign | 0x7f800000u | (rest & 0x3ffu) << 13);
  if (rest >= 0x400u) return std::bit_cast<float>(sign | ((rest << 13) + (112u << 23)));
  // Subnormal: rest * 2^-24, exact.
  return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(static_cast<float>(rest) * 0x1p-24f));
}

/// Rounds to nearest, ties to even; beyond the range to infinity; NaN stays a (quiet) NaN.
inline uint16_t to_half(float value) {
  auto bits = std::bit_cast<uint32_t>(value);
  auto sign = static_cast<uint16_t>(bits >> 16 & 0x8000u);
  bits &= 0x7fffffffu;
  if (bits > 0x7f800000u) return static_cast<uint16_t>(sign | 0x7e00u | (bits >> 13 & 0x1ffu));
  if (bits >= 0x47800000u) return static_cast<uint16_t>(sign | 0x7c00u);
  uint32_t half;
  if (bits < 0x38800000u) {
    // Below 2^-14: adding 0.5 leaves the multiple of 2^-24 in the low bits, rounded by the
    // addition.
    half = std::bit_cast<uint32_t>(std::bit_cast<float>(bits) + 0.5f) - 0x3f000000u;
  } else {
    half = (bits - (112u << 23) + 0xfffu + (bits >> 13 & 1u)) >> 13;
  }
  return static_cast<uint16_t>(sign | half);
}

} // namespace
} // namespace lamella::gpu
