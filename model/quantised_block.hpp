/// Where the bits of quantised blocks lie in a file, one struct per type.
///
/// A block holds a code of a few bits for each element, and numbers for every `scale_elements` of
/// them. With s = i / scale_elements, element i is
///
///   d * scale(s) * level(code(i))                      where has_minimum is false
///   d * scale(s) * level(code(i)) + m * minimum(s)     where it is true
///
/// d and m are halves, given as their bits; the rest are integers so small that fp32 holds every
/// product exactly (24 bits at most), and the value is rounded once, in the sum, or not at all.
/// Blocks of 256 elements ("super-blocks") have integer scales of a few bits, so that the halves
/// cost little; their minimums are subtracted, so m is what they have with the other sign. Blocks
/// of 32 have no integers: scale(s) and minimum(s) are 1.
///
/// `code_bits` says how many bits a code has. level() subtracts `zero_code`, or where has_levels is
/// true looks into a table. Plain integer arithmetic on bytes: constexpr, and fit for device code.
#pragma once

#include "model/tensor.hpp"

#include <cstdint>
#include <type_traits>
#include <utility>

namespace lamella::model {

/// Levels of the 4-bit codes of iq4_nl and iq4_xs, raised by 128: byte c is that of code c, or of
/// code 8 + c. Two words and no array: a constant array is the host's, and device code that chooses
/// between its elements reads it there.
inline constexpr uint64_t iq4_levels_low = 0x766a5d4f3f2d1801, iq4_levels_high = 0xf1d9c5b5a6998d81;

template <tensor_type type> struct quantised_block;

namespace block_detail {

constexpr uint16_t u16(const uint8_t* p) { return static_cast<uint16_t>(p[0] | p[1] << 8); }
constexpr uint16_t negated(uint16_t half) { return half ^ 0x8000; }
constexpr uint32_t nibble(uint8_t byte, uint32_t high) { return byte >> (4 * high) & 15u; }

/// Blocks of 32: d, m where there is one, and no integer scales.
struct of_32 {
  static constexpr uint32_t scale_elements = 32;
  static constexpr uint16_t d(const uint8_t* b) { return u16(b); }
  static constexpr uint16_t m(const uint8_t* b) { return u16(b + 2); }
  static constexpr int32_t scale(const uint8_t*, uint32_t) { return 1; }
  static constexpr int32_t minimum(const uint8_t*, uint32_t) { return 1; }
};

/// 4-bit codes of 32 elements: byte i holds element i in its low and element i + 16 in its high
/// nibble.
constexpr uint32_t code_4(const uint8_t* p, uint32_t i) { return nibble(p[i % 16], i / 16); }

/// 5-bit codes of 32 elements: bit i of the first four bytes is the highest bit of element i.
constexpr uint32_t code_5(const uint8_t* p, uint32_t i) {
  return code_4(p + 4, i) | (p[i / 8] >> i % 8 & 1u) << 4;
}

/// 2-bit codes of 256 elements: in each half of the elements byte j holds elements j, j + 32,
/// j + 64 and j + 96 in ascending pairs of bits.
constexpr uint32_t code_2(const uint8_t* p, uint32_t i) {
  return p[i / 128 * 32 + i % 32] >> (2 * (i / 32 % 4)) & 3u;
}

/// One bit of each of 256 elements: bit k of byte j is that of element 32 k + j.
constexpr uint32_t bit_of(const uint8_t* p, uint32_t i) { return p[i % 32] >> (i / 32) & 1u; }

/// Super-blocks of q4_k and q5_k: d, -m, 8 scales and 8 minimums of 6 bits in 12 bytes.
struct of_256_by_32 {
  static constexpr uint32_t scale_elements = 32;
  static constexpr bool has_minimum = true, has_levels = false;
  static constexpr uint32_t zero_code = 0;
  static constexpr uint16_t d(const uint8_t* b) { return u16(b); }
  static constexpr uint16_t m(const uint8_t* b) { return negated(u16(b + 2)); }
  static constexpr int32_t scale(const uint8_t* b, uint32_t s) {
    const uint8_t* p = b + 4;
    return s < 4 ? p[s] & 63 : (p[s + 4] & 15) | (p[s - 4] >> 6) << 4;
  }
  static constexpr int32_t minimum(const uint8_t* b, uint32_t s) {
    const uint8_t* p = b + 4;
    return s < 4 ? p[s + 4] & 63 : p[s + 4] >> 4 | (p[s] >> 6) << 4;
  }
  /// Low nibbles: in each quarter of the elements byte j holds elements j and j + 32.
  static constexpr uint32_t nibble_of(const uint8_t* p, uint32_t i) {
    return nibble(p[i / 64 * 32 + i % 32], i / 32 % 2);
  }
  static constexpr int32_t level(uint32_t code) { return static_cast<int32_t>(code); }
};

/// Codes that stand for themselves, less `zero`.
template <uint32_t zero> struct centred {
  static constexpr bool has_minimum = false, has_levels = false;
  static constexpr uint32_t zero_code = zero;
  static constexpr int32_t level(uint32_t code) {
    return static_cast<int32_t>(code) - static_cast<int32_t>(zero);
  }
};

/// Codes from 0 up, over a minimum.
struct above_minimum {
  static constexpr bool has_minimum = true, has_levels = false;
  static constexpr uint32_t zero_code = 0;
  static constexpr int32_t level(uint32_t code) { return static_cast<int32_t>(code); }
};

struct iq4_codes {
  static constexpr uint32_t code_bits = 4;
  static constexpr bool has_minimum = false, has_levels = true;
  static constexpr int32_t level(uint32_t code) {
    const uint64_t half = code < 8 ? iq4_levels_low : iq4_levels_high;
    return static_cast<int32_t>(half >> code % 8 * 8 & 255) - 128;
  }
};

} // namespace block_detail

/// f16 d; 32 signed bytes.
template <>
struct quantised_block<tensor_type::q8_0> : block_detail::of_32, block_detail::centred<128> {
  static constexpr uint32_t code_bits = 8;
  static constexpr uint32_t code(const uint8_t* b, uint32_t i) { return b[2 + i] ^ 128u; }
};

/// f16 d; nibbles.
template <>
struct quantised_block<tensor_type::q4_0> : block_detail::of_32, block_detail::centred<8> {
  static constexpr uint32_t code_bits = 4;
  static constexpr uint32_t code(const uint8_t* b, uint32_t i) {
    return block_detail::code_4(b + 2, i);
  }
};

/// f16 d; f16 m; nibbles.
template <>
struct quantised_block<tensor_type::q4_1> : block_detail::of_32, block_detail::above_minimum {
  static constexpr uint32_t code_bits = 4;
  static constexpr uint32_t code(const uint8_t* b, uint32_t i) {
    return block_detail::code_4(b + 4, i);
  }
};

/// f16 d; 4 bytes of highest bits; nibbles.
template <>
struct quantised_block<tensor_type::q5_0> : block_detail::of_32, block_detail::centred<16> {
  static constexpr uint32_t code_bits = 5;
  static constexpr uint32_t code(const uint8_t* b, uint32_t i) {
    return block_detail::code_5(b + 2, i);
  }
};

/// f16 d; f16 m; 4 bytes of highest bits; nibbles.
template <>
struct quantised_block<tensor_type::q5_1> : block_detail::of_32, block_detail::above_minimum {
  static constexpr uint32_t code_bits = 5;
  static constexpr uint32_t code(const uint8_t* b, uint32_t i) {
    return block_detail::code_5(b + 4, i);
  }
};

/// 16 bytes, of 16 elements each: the scale in the low, the minimum in the high nibble; 64 bytes of
/// codes; f16 d; f16 -m.
template <> struct quantised_block<tensor_type::q2_k> : block_detail::above_minimum {
  static constexpr uint32_t scale_elements = 16;
  static constexpr uint32_t code_bits = 2;
  static constexpr uint16_t d(const uint8_t* b) { return block_detail::u16(b + 80); }
  static constexpr uint16_t m(const uint8_t* b) {
    return block_detail::negated(block_detail::u16(b + 82));
  }
  static constexpr int32_t scale(const uint8_t* b, uint32_t s) { return b[s] & 15; }
  static constexpr int32_t minimum(const uint8_t* b, uint32_t s) { return b[s] >> 4; }
  static constexpr uint32_t code(const uint8_t* b, uint32_t i) {
    return block_detail::code_2(b + 16, i);
  }
};

/// 32 bytes of highest bits; 64 bytes of the other two; 16 scales of 6 bits, 32 for 0: 8 bytes with
/// the low nibbles of scales s and s + 8, 4 bytes with the other bits of scales s, s + 4, s + 8 and
/// s + 12; f16 d.
template <> struct quantised_block<tensor_type::q3_k> : block_detail::centred<4> {
  static constexpr uint32_t scale_elements = 16;
  static constexpr uint32_t code_bits = 3;
  static constexpr uint16_t d(const uint8_t* b) { return block_detail::u16(b + 108); }
  static constexpr int32_t scale(const uint8_t* b, uint32_t s) {
    const uint32_t low = block_detail::nibble(b[96 + s % 8], s / 8);
    const uint32_t high = b[104 + s % 4] >> (2 * (s / 4)) & 3u;
    return static_cast<int32_t>(low | high << 4) - 32;
  }
  static constexpr uint32_t code(const uint8_t* b, uint32_t i) {
    return block_detail::code_2(b + 32, i) | block_detail::bit_of(b, i) << 2;
  }
};

/// f16 d; f16 -m; scales and minimums; nibbles.
template <> struct quantised_block<tensor_type::q4_k> : block_detail::of_256_by_32 {
  static constexpr uint32_t code_bits = 4;
  static constexpr uint32_t code(const uint8_t* b, uint32_t i) { return nibble_of(b + 16, i); }
};

/// f16 d; f16 -m; scales and minimums; 32 bytes of highest bits; nibbles.
template <> struct quantised_block<tensor_type::q5_k> : block_detail::of_256_by_32 {
  static constexpr uint32_t code_bits = 5;
  static constexpr uint32_t code(const uint8_t* b, uint32_t i) {
    return nibble_of(b + 48, i) | block_detail::bit_of(b + 16, i) << 4;
  }
};

/// 128 bytes of nibbles: in each half of the elements byte j holds elements j and j + 64; 64 bytes
/// of the two highest bits; 16 signed bytes, scales of 16 elements; f16 d.
template <> struct quantised_block<tensor_type::q6_k> : block_detail::centred<32> {
  static constexpr uint32_t scale_elements = 16;
  static constexpr uint32_t code_bits = 6;
  static constexpr uint16_t d(const uint8_t* b) { return block_detail::u16(b + 208); }
  static constexpr int32_t scale(const uint8_t* b, uint32_t s) {
    return static_cast<int8_t>(b[192 + s]);
  }
  static constexpr uint32_t code(const uint8_t* b, uint32_t i) {
    return block_detail::nibble(b[i / 128 * 64 + i % 64], i / 64 % 2)
           | block_detail::code_2(b + 128, i) << 4;
  }
};

/// f16 d; nibbles, which choose a level.
template <>
struct quantised_block<tensor_type::iq4_nl> : block_detail::of_32, block_detail::iq4_codes {
  static constexpr uint32_t code(const uint8_t* b, uint32_t i) {
    return block_detail::code_4(b + 2, i);
  }
};

/// f16 d; 8 scales of 6 bits, 32 for 0: the two highest bits in 2 bytes, the nibbles in 4; nibbles,
/// which choose a level, of 32 elements each.
template <> struct quantised_block<tensor_type::iq4_xs> : block_detail::iq4_codes {
  static constexpr uint32_t scale_elements = 32;
  static constexpr uint16_t d(const uint8_t* b) { return block_detail::u16(b); }
  static constexpr int32_t scale(const uint8_t* b, uint32_t s) {
    const uint32_t high = block_detail::u16(b + 2) >> (2 * s) & 3u;
    return static_cast<int32_t>(block_detail::nibble(b[4 + s / 2], s % 2) | high << 4) - 32;
  }
  static constexpr uint32_t code(const uint8_t* b, uint32_t i) {
    return block_detail::code_4(b + 8 + i / 32 * 16, i % 32);
  }
};

/// Calls f with the type as an integral constant, where it is a quantised one; says whether it is.
template <class F> constexpr bool with_quantised(tensor_type type, F&& f) {
  const auto call = [&](auto index) {
    constexpr auto known = tensor_types[index].type;
    if constexpr (block_elements(known) != 1)
      if (type == known) {
        f(std::integral_constant<tensor_type, known>{});
        return true;
      }
    return false;
  };
  return [&]<size_t... i>(std::index_sequence<i...>) {
    return (call(std::integral_constant<size_t, i>{}) || ...);
  }
  (std::make_index_sequence<tensor_types.size()>{});
}

} // namespace lamella::model
