/// Sixteen fp32 lanes as four vectors of the compiler's own kind, for any CPU; see
/// lanes_avx512.hpp. Vectors of 16 bytes are what every 64-bit CPU has; fma is a multiplication and
/// an addition.
#pragma once

#include "gpu/kernels/half.hpp"
#include "model/quantised_block.hpp"

#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace lamella::gpu {
namespace {

using float4 = float __attribute__((vector_size(16)));
using int4 = int32_t __attribute__((vector_size(16)));
using uint4 = uint32_t __attribute__((vector_size(16)));
using short8 = int16_t __attribute__((vector_size(16)));
using byte8 = uint8_t __attribute__((vector_size(8)));

template <class T> T load_vector(const void* p) {
  T v;
  __builtin_memcpy(&v, p, sizeof v);
  return v;
}

struct lanes {
  struct vec {
    float4 v[4];
  };

  static constexpr int quantised_rows = 2, quantised_panels = 1, single_row_panels = 1;
  static constexpr int tall_rows = 0;
  static constexpr int plain_rows = 2, plain_panels = 1;
  static constexpr int queries = 1, row_positions = 1;
  static constexpr int key_rows(int) { return 4; }
  static constexpr int value_vectors(int) { return 2; }
  static constexpr bool unrolled_quarters = false;
  static constexpr uint32_t prefetch_bytes = 12288;

  static vec zero() { return set(0); }
  static vec set(float x) {
    float4 all{x, x, x, x};
    return {{all, all, all, all}};
  }
  static vec load(const float* p) {
    return {{load_vector<float4>(p), load_vector<float4>(p + 4), load_vector<float4>(p + 8),
             load_vector<float4>(p + 12)}};
  }
  static vec load_f16(const void* p) { return load_halves<from_half>(p); }
  static vec load_bf16(const void* p) { return load_halves<from_bf16>(p); }
  static vec load_i8(const void* p) {
    vec x;
    for (int i = 0; i < 16; ++i) x.v[i / 4][i % 4] = static_cast<const int8_t*>(p)[i];
    return x;
  }
  static vec load_i32(const int32_t* p) {
    vec x;
    for (int i = 0; i < 16; ++i) x.v[i / 4][i % 4] = static_cast<float>(p[i]);
    return x;
  }
  static void store(float* p, vec x) { __builtin_memcpy(p, &x, sizeof x); }
  static void store_f16(void* p, vec x) {
    uint16_t halves[16];
    for (int i = 0; i < 16; ++i) halves[i] = to_half(x.v[i / 4][i % 4]);
    __builtin_memcpy(p, halves, sizeof halves);
  }
  static vec load_first(const float* p, uint32_t n) {
    float all[16] = {};
    for (uint32_t i = 0; i < n; ++i) all[i] = p[i];
    return load(all);
  }
  static void store_first(float* p, vec x, uint32_t n) {
    for (uint32_t i = 0; i < n; ++i) p[i] = x.v[i / 4][i % 4];
  }

  static vec add(vec x, vec y) {
    return each(x, y, [](auto a, auto b) { return a + b; });
  }
  static vec sub(vec x, vec y) {
    return each(x, y, [](auto a, auto b) { return a - b; });
  }
  static vec mul(vec x, vec y) {
    return each(x, y, [](auto a, auto b) { return a * b; });
  }
  static vec div(vec x, vec y) {
    return each(x, y, [](auto a, auto b) { return a / b; });
  }
  static vec max(vec x, vec y) {
    return each(x, y, [](auto a, auto b) { return a > b ? a : b; });
  }
  static vec min(vec x, vec y) {
    return each(x, y, [](auto a, auto b) { return a < b ? a : b; });
  }
  static vec fma(vec x, vec y, vec z) { return add(mul(x, y), z); }
  /// For |x| < 2^22: adding and taking away 1.5 * 2^23 leaves an integer.
  static vec round(vec x) { return sub(add(x, set(0x1.8p23f)), set(0x1.8p23f)); }
  static vec times_power_of_two(vec x, vec n) {
    return each(x, n, [](auto a, auto b) {
      // A NaN has no exponent; its product is a NaN with any.
      auto exponent = __builtin_convertvector(b == b ? b : float4{}, int4) + 127;
      return a * reinterpret_cast<float4>(exponent << 23);
    });
  }
  static vec zero_below(vec v, vec x, float limit) {
    return each(v, x, [&](auto a, auto b) { return b < limit ? float4{} : a; });
  }
  static vec keep_first(vec x, uint32_t n, float other) {
    for (uint32_t i = n; i < 16; ++i) x.v[i / 4][i % 4] = other;
    return x;
  }

  static float sum(vec x) {
    auto s = (x.v[0] + x.v[1]) + (x.v[2] + x.v[3]);
    return (s[0] + s[2]) + (s[1] + s[3]);
  }
  static float maximum(vec x) {
    auto larger = [](auto a, auto b) { return a > b ? a : b; };
    float4 m = larger(larger(x.v[0], x.v[1]), larger(x.v[2], x.v[3]));
    return larger(larger(m[0], m[2]), larger(m[1], m[3]));
  }

  using partial = float4;
  static partial partial_sums(vec a, vec b, vec c, vec d) {
    return partial{sum(a), sum(b), sum(c), sum(d)};
  }
  static vec sums(partial p0, partial p1, partial p2, partial p3) { return {{p0, p1, p2, p3}}; }
  using order_of_sums = std::integer_sequence<int, 1, 2, 8, 4>;
  using order_of_sum = std::integer_sequence<int, 1, 2, 8, 4>;

  static vec load_low_u4(const void* p) { return load_u4<0>(p); }
  static vec load_high_u4(const void* p) { return load_u4<4>(p); }
  static vec first_bf16(const void* p) {
    return set(std::bit_cast<float>(load_as<uint32_t>(p) << 16));
  }
  static vec second_bf16(const void* p) {
    return set(std::bit_cast<float>(load_as<uint32_t>(p) & 0xffff0000u));
  }

  // --- operands of tiles ---

  static void store_bf16_pairs(void* p, vec x, vec y) {
    uint32_t pairs[16];
    for (int i = 0; i < 16; ++i)
      pairs[i] = std::bit_cast<uint32_t>(x.v[i / 4][i % 4]) >> 16
                 | (std::bit_cast<uint32_t>(y.v[i / 4][i % 4]) & 0xffff0000u);
    __builtin_memcpy(p, pairs, sizeof pairs);
  }
  static void store_rounded_pairs(void* p, vec x, vec y) {
    store_bf16_pairs(p, rounded_bf16(x), rounded_bf16(y));
  }
  static vec rounded_bf16(vec x) {
    for (auto& v : x.v)
      v = reinterpret_cast<float4>((reinterpret_cast<uint4>(v) + 0x8000u) & 0xffff0000u);
    return x;
  }
  static void store_bf16(void* p, vec x) {
    uint16_t halves[16];
    for (int i = 0; i < 16; ++i)
      halves[i] = static_cast<uint16_t>(std::bit_cast<uint32_t>(x.v[i / 4][i % 4]) >> 16);
    __builtin_memcpy(p, halves, sizeof halves);
  }
  static void pair_halves(const void* from, void* to) {
    uint16_t in[32], out[32];
    __builtin_memcpy(in, from, sizeof in);
    for (int i = 0; i < 32; ++i) out[i] = in[i / 2 + i % 2 * 16];
    __builtin_memcpy(to, out, sizeof out);
  }
  static vec beyond_bf16(vec x) {
    for (auto& v : x.v) v -= reinterpret_cast<float4>(reinterpret_cast<uint4>(v) & 0xffff0000u);
    return x;
  }
  static void transpose(const void* from, void* to) {
    transpose_first(static_cast<const float*>(from), 16, static_cast<float*>(to), 16);
  }
  static void transpose_first(const float* from, uint32_t columns, float* to, size_t stride) {
    for (uint32_t i = 0; i < columns; ++i)
      for (uint32_t j = 0; j < 16; ++j)
        __builtin_memcpy(to + i * stride + j, from + size_t{j} * 16 + i, 4);
  }

  // --- products of bytes ---
  // A product of a raised byte and an activation is at most 255 * 127 < 2^15: it fits 16 bits. The
  // 32-bit sums hold pairs of them, two to an output, until a block is finished.

  static constexpr bool raised_bytes = true;
  struct values {
    uint64_t v[8]; ///< two outputs each; shifted as words, which every CPU can
  };
  using activations = short8;
  struct pair_sums {
    int4 v[8];
  };
  template <int bits> using block_sums = pair_sums;

  static values load_codes(const std::byte* p) {
    values w;
    __builtin_memcpy(&w, p, sizeof w);
    return w;
  }
  static values operands_of_bytes(values codes) { return codes; }
  static values operands_of_levels(values codes) {
    constexpr uint64_t raised[2]{model::iq4_levels_low, model::iq4_levels_high};
    uint8_t levels[16], bytes[64];
    __builtin_memcpy(levels, raised, sizeof levels);
    __builtin_memcpy(bytes, &codes, sizeof bytes);
    for (auto& b : bytes) b = levels[b];
    __builtin_memcpy(&codes, bytes, sizeof bytes);
    return codes;
  }
  template <int shift, int mask> static values take_bits(values w) {
    for (auto& v : w.v) v = moved<shift>(v) & mask * uint64_t{0x0101010101010101};
    return w;
  }
  template <int shift, int mask> static values put_bits(values codes, values w) {
    w = take_bits<shift, mask>(w);
    for (int i = 0; i < 8; ++i) codes.v[i] |= w.v[i];
    return codes;
  }
  /// Operands as signed bytes: `zero` is the one that stands for 0.
  template <int zero> static void store_signed(int8_t* p, values w) {
    __builtin_memcpy(p, &w, sizeof w);
    for (int i = 0; i < 64; ++i) p[i] = static_cast<int8_t>(static_cast<uint8_t>(p[i]) - zero);
  }
  static activations broadcast(const int8_t* p) {
    return activations{p[0], p[1], p[2], p[3], p[0], p[1], p[2], p[3]};
  }
  template <int bits> static constexpr int groups_at_once = 1;
  template <int bits> static pair_sums start(int32_t bias) {
    pair_sums sums;
    for (auto& v : sums.v) v = int4{bias, 0, bias, 0};
    return sums;
  }
  template <int bits>
  static pair_sums accumulate(pair_sums sums, const values (&w)[1], const activations (&a)[1]) {
    for (int i = 0; i < 8; ++i) {
      auto bytes = __builtin_convertvector(std::bit_cast<byte8>(w[0].v[i]), short8);
      auto products = reinterpret_cast<int4>(bytes * a[0]);
      auto even = reinterpret_cast<int4>(reinterpret_cast<uint4>(products) << 16) >> 16;
      sums.v[i] += even + (products >> 16);
    }
    return sums;
  }
  template <int bits> static vec finish(pair_sums sums, int32_t) {
    vec result;
    for (int i = 0; i < 16; ++i) {
      const auto& s = sums.v[i / 2];
      auto at = i % 2 * 2;
      result.v[i / 4][i % 4] = static_cast<float>(s[at] + s[at + 1]);
    }
    return result;
  }

  static uint32_t absolute_maximum_bits(const float* x) {
    uint32_t most = 0;
    for (int i = 0; i < 32; ++i) {
      auto bits = std::bit_cast<uint32_t>(x[i]) & 0x7fffffffu;
      most = bits > most ? bits : most;
    }
    return most;
  }
  static int32_t quantise(const float* x, float factor, int8_t* q) {
    int32_t sum = 0;
    for (int i = 0; i < 32; ++i) {
      auto rounded = static_cast<int32_t>(x[i] * factor + 0x1.8p23f - 0x1.8p23f);
      q[i] = static_cast<int8_t>(rounded);
      sum += rounded;
    }
    return sum;
  }

private:
  template <int shift> static uint64_t moved(uint64_t v) {
    if constexpr (shift < 0)
      return v << -shift;
    else
      return v >> shift;
  }
  template <int shift> static vec load_u4(const void* p) {
    vec x;
    for (int i = 0; i < 16; ++i)
      x.v[i / 4][i % 4] = static_cast<float>(static_cast<const uint8_t*>(p)[i] >> shift & 15);
    return x;
  }
  template <class F> static vec each(vec x, vec y, F&& f) {
    return {{f(x.v[0], y.v[0]), f(x.v[1], y.v[1]), f(x.v[2], y.v[2]), f(x.v[3], y.v[3])}};
  }
  template <float (*widen)(uint16_t)> static vec load_halves(const void* p) {
    vec x;
    for (int i = 0; i < 16; ++i)
      x.v[i / 4][i % 4] = widen(load_as<uint16_t>(static_cast<const std::byte*>(p) + 2 * i));
    return x;
  }
};

} // namespace
} // namespace lamella::gpu
