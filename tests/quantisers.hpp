/// Packing floats into the stored tensor types, for tests that make their own model files.
#pragma once

#include "model/tensor.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>

namespace lamella::tests {

/// Nearest IEEE half, ties to even; overflow becomes infinity.
inline uint16_t to_half(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  const auto sign = static_cast<uint16_t>(bits >> 16 & 0x8000);
  const uint32_t magnitude = bits & 0x7FFFFFFF;
  if (magnitude >= 0x7F800000) // infinity, NaN
    return static_cast<uint16_t>(sign | 0x7C00 | (magnitude > 0x7F800000 ? 0x200 : 0));
  if (magnitude >= 0x477FF000) return sign | 0x7C00; // 65520 and more
  if (magnitude < 0x38800000) {                      // below 2^-14: a multiple of 2^-24
    const float scaled = std::bit_cast<float>(magnitude) * 0x1p24f;
    return static_cast<uint16_t>(sign | static_cast<uint16_t>(std::nearbyint(scaled)));
  }
  const uint32_t rounded = magnitude + 0xFFF + (magnitude >> 13 & 1);
  return static_cast<uint16_t>(sign | ((rounded - 0x38000000) >> 13));
}

/// The float that a half stands for (finite halves only).
inline float from_half(uint16_t half) {
  const int exponent = half >> 10 & 31;
  const int fraction = half & 0x3FF;
  const float magnitude = exponent == 0
                              ? std::ldexp(static_cast<float>(fraction), -24)
                              : std::ldexp(static_cast<float>(fraction + 1024), exponent - 25);
  return half & 0x8000 ? -magnitude : magnitude;
}

/// Nearest bfloat16, ties to even (finite values only).
inline uint16_t to_bf16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  return static_cast<uint16_t>((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}

/// Packs `values` (a multiple of block_elements(type)) as they are stored in a file.
inline std::string pack(model::tensor_type type, std::span<const float> values) {
  using model::tensor_type;
  std::string out;
  const auto put = [&out](const auto& value) {
    char raw[sizeof value];
    std::memcpy(raw, &value, sizeof value);
    out.append(raw, sizeof value);
  };
  const auto put_nibbles = [&](auto&& quant) {
    for (int i = 0; i < 16; ++i) out += static_cast<char>(quant(i) | quant(i + 16) << 4);
  };
  switch (type) {
  case tensor_type::f32:
    for (const float x : values) put(x);
    return out;
  case tensor_type::f16:
    for (const float x : values) put(to_half(x));
    return out;
  case tensor_type::bf16:
    for (const float x : values) put(to_bf16(x));
    return out;
  default:
    break;
  }
  for (size_t begin = 0; begin < values.size(); begin += 32) {
    const auto block = values.subspan(begin, 32);
    const auto [low, high] = std::minmax_element(block.begin(), block.end());
    if (type == tensor_type::q8_0) {
      const float d = std::max(std::abs(*low), std::abs(*high)) / 127;
      put(to_half(d));
      for (const float x : block)
        put(static_cast<int8_t>(d > 0 ? std::clamp(std::round(x / d), -127.f, 127.f) : 0.f));
    } else if (type == tensor_type::q4_0) {
      // The value of largest magnitude becomes -8, so that the wider side of the range is used.
      const float d = (std::abs(*low) > std::abs(*high) ? *low : *high) / -8;
      put(to_half(d));
      put_nibbles([&](int i) {
        const float q = d != 0 ? block[static_cast<size_t>(i)] / d + 8 : 8;
        return static_cast<int>(std::clamp(std::round(q), 0.f, 15.f));
      });
    } else {
      const float d = (*high - *low) / 15;
      put(to_half(d));
      put(to_half(*low));
      put_nibbles([&](int i) {
        const float q = d > 0 ? (block[static_cast<size_t>(i)] - *low) / d : 0;
        return static_cast<int>(std::clamp(std::round(q), 0.f, 15.f));
      });
    }
  }
  return out;
}

} // namespace lamella::tests
