/// Packing floats into the stored tensor types, for tests that make their own model files.
#pragma once

#include "model/tensor.hpp"

#include <algorithm>
#include <array>
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

namespace detail {

inline void put_half(float value, uint8_t* to) {
  const uint16_t bits = to_half(value);
  std::memcpy(to, &bits, sizeof bits);
}
inline float half_at(const uint8_t* from) {
  uint16_t bits = 0;
  std::memcpy(&bits, from, sizeof bits);
  return from_half(bits);
}

/// Puts the code of element i into a block of zeros.
inline void put_code(model::tensor_type type, uint8_t* b, uint32_t i, uint32_t code) {
  const auto put = [&](uint32_t byte, uint32_t value, uint32_t shift) {
    b[byte] = static_cast<uint8_t>(b[byte] | value << shift);
  };
  const auto low = code & 15, fifth = code >> 4;
  using enum model::tensor_type;
  switch (type) {
  case q8_0:
    return put(2 + i, code, 0);
  case q4_0:
  case iq4_nl:
    return put(2 + i % 16, code, i / 16 * 4);
  case q4_1:
    return put(4 + i % 16, code, i / 16 * 4);
  case q5_0:
    put(2 + i / 8, fifth, i % 8);
    return put(6 + i % 16, low, i / 16 * 4);
  case q5_1:
    put(4 + i / 8, fifth, i % 8);
    return put(8 + i % 16, low, i / 16 * 4);
  case q2_k:
    return put(16 + i / 128 * 32 + i % 32, code, i % 128 / 32 * 2);
  case q3_k:
    put(i % 32, code >> 2, i / 32);
    return put(32 + i / 128 * 32 + i % 32, code & 3, i % 128 / 32 * 2);
  case q4_k:
    return put(16 + i / 64 * 32 + i % 32, code, i % 64 / 32 * 4);
  case q5_k:
    put(16 + i % 32, fifth, i / 32);
    return put(48 + i / 64 * 32 + i % 32, low, i % 64 / 32 * 4);
  case q6_k:
    put(128 + i / 128 * 32 + i % 32, fifth, i % 128 / 32 * 2);
    return put(i / 128 * 64 + i % 64, low, i % 128 / 64 * 4);
  case iq4_xs:
    return put(8 + i / 32 * 16 + i % 16, code, i % 32 / 16 * 4);
  default:
    return;
  }
}

/// Puts the s-th integer scale and minimum of a super-block into a block of zeros; scales with a
/// sign are raised to be unsigned, but for those of q6_k.
inline void put_integers(model::tensor_type type, uint8_t* b, uint32_t s, int scale, int minimum) {
  const auto put = [&](uint32_t byte, int value, uint32_t shift) {
    b[byte] = static_cast<uint8_t>(b[byte] | value << shift);
  };
  using enum model::tensor_type;
  switch (type) {
  case q2_k:
    return put(s, scale | minimum << 4, 0);
  case q3_k:
    put(96 + s % 8, scale & 15, s / 8 * 4);
    return put(104 + s % 4, scale >> 4, s / 4 * 2);
  case q4_k:
  case q5_k:
    if (s < 4) {
      put(4 + s, scale, 0);
      return put(8 + s, minimum, 0);
    }
    put(8 + s, (scale & 15) | (minimum & 15) << 4, 0);
    put(s, scale >> 4, 6);
    return put(4 + s, minimum >> 4, 6);
  case q6_k:
    return put(192 + s, scale & 255, 0);
  case iq4_xs:
    put(2 + s / 4, scale >> 4, s % 4 * 2);
    return put(4 + s / 2, scale & 15, s % 2 * 4);
  default:
    return;
  }
}

/// How a quantised type is packed: codes from 0 to `code_max`, `code_zero` of them for 0.
struct quantiser {
  int code_max, code_zero;
  uint32_t elements;           ///< that share a scale
  int scale_max = 1;           ///< of the integers of a super-block
  int scale_raised = 0;        ///< what they are raised by
  uint32_t d_at = 0, m_at = 0; ///< m_at 0: no minimum
};

inline quantiser quantiser_of(model::tensor_type type) {
  using enum model::tensor_type;
  switch (type) {
  case q8_0:
    return {255, 128, 32};
  case q4_0:
    return {15, 8, 32};
  case q4_1:
    return {15, 0, 32, 1, 0, 0, 2};
  case q5_0:
    return {31, 16, 32};
  case q5_1:
    return {31, 0, 32, 1, 0, 0, 2};
  case q2_k:
    return {3, 0, 16, 15, 0, 80, 82};
  case q3_k:
    return {7, 4, 16, 31, 32, 108};
  case q4_k:
    return {15, 0, 32, 63, 0, 0, 2};
  case q5_k:
    return {31, 0, 32, 63, 0, 0, 2};
  case q6_k:
    return {63, 32, 16, 127, 0, 208};
  case iq4_nl:
    return {15, 127, 32};
  default: // iq4_xs
    return {15, 127, 32, 31, 32};
  }
}

inline constexpr int iq4_levels[16]{-127, -104, -83, -65, -49, -35, -22, -10,
                                    1,    13,   25,  38,  53,  69,  89,  113};

/// The code for `x` in quanta above the minimum, or above 0.
inline uint32_t nearest_code(const quantiser& q, bool levels, float x) {
  if (!levels)
    return static_cast<uint32_t>(std::clamp(std::round(x) + static_cast<float>(q.code_zero), 0.f,
                                            static_cast<float>(q.code_max)));
  const auto off = [&](int level) { return std::abs(static_cast<float>(level) - x); };
  return static_cast<uint32_t>(
      std::min_element(iq4_levels, iq4_levels + 16, [&](int a, int b) { return off(a) < off(b); })
      - iq4_levels);
}

/// Packs one block, simply: scales and minimums that just cover the values, and nearest codes. The
/// value of largest magnitude gets the lowest code where codes have a sign.
inline std::string pack_block(model::tensor_type type, std::span<const float> values) {
  using model::tensor_type;
  const auto q = quantiser_of(type);
  const bool super = block_elements(type) == 256, has_minimum = q.m_at != 0;
  const bool levels = type == tensor_type::iq4_nl || type == tensor_type::iq4_xs;
  std::array<float, 16> scales{}, minimums{};
  const auto count = static_cast<uint32_t>(values.size()) / q.elements;
  for (uint32_t s = 0; s < count; ++s) {
    const auto part = values.subspan(s * q.elements, q.elements);
    const auto [low, high] = std::minmax_element(part.begin(), part.end());
    if (has_minimum) {
      // Minimums of super-blocks cannot be above 0.
      minimums[s] = super ? std::min(*low, 0.f) : *low;
      scales[s] = (*high - minimums[s]) / static_cast<float>(q.code_max);
    } else {
      // Signed bytes are used to 127 on both sides.
      const float largest = std::abs(*low) > std::abs(*high) ? *low : *high;
      scales[s] = type == tensor_type::q8_0 ? std::abs(largest) / 127
                                            : largest / static_cast<float>(-q.code_zero);
    }
  }
  const auto largest = [&](const std::array<float, 16>& of) {
    float most = 0;
    for (const float x : of) most = std::max(most, std::abs(x));
    return most;
  };
  std::string bytes(block_bytes(type), '\0');
  auto* b = reinterpret_cast<uint8_t*>(bytes.data());
  put_half(super ? largest(scales) / static_cast<float>(q.scale_max) : scales[0], b + q.d_at);
  if (has_minimum)
    put_half(super ? largest(minimums) / static_cast<float>(q.scale_max) : minimums[0], b + q.m_at);
  const float d = half_at(b + q.d_at), m = has_minimum ? half_at(b + q.m_at) : 0;
  for (uint32_t s = 0; s < count; ++s) {
    float scale = d, minimum = m;
    if (super) {
      const auto times = [](float x, float unit) {
        return static_cast<int>(std::round(unit != 0 ? x / unit : 0));
      };
      const int n = times(scales[s], d), n_minimum = times(-minimums[s], m);
      put_integers(type, b, s, n + q.scale_raised, n_minimum);
      scale = d * static_cast<float>(n);
      minimum = -m * static_cast<float>(n_minimum);
    }
    for (uint32_t i = s * q.elements; i < (s + 1) * q.elements; ++i) {
      const auto code = nearest_code(q, levels, scale != 0 ? (values[i] - minimum) / scale : 0);
      put_code(type, b, i, type == tensor_type::q8_0 ? code ^ 128 : code);
    }
  }
  return bytes;
}

} // namespace detail

/// Packs `values` (a multiple of block_elements(type)) as they are stored in a file.
inline std::string pack(model::tensor_type type, std::span<const float> values) {
  using model::tensor_type;
  std::string out;
  const auto put = [&out](const auto& value) {
    char raw[sizeof value];
    std::memcpy(raw, &value, sizeof value);
    out.append(raw, sizeof value);
  };
  if (type == tensor_type::f32)
    for (const float x : values) put(x);
  else if (type == tensor_type::f16)
    for (const float x : values) put(to_half(x));
  else if (type == tensor_type::bf16)
    for (const float x : values) put(to_bf16(x));
  else
    for (size_t at = 0; at < values.size(); at += block_elements(type))
      out += detail::pack_block(type, values.subspan(at, block_elements(type)));
  return out;
}

} // namespace lamella::tests
