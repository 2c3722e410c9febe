/// Sixteen fp32 lanes in AVX-512, and byte products with VNNI.
///
/// Every kernel set defines `lanes` (this file, lanes_avx2.hpp, lanes_portable.hpp) with the same
/// members; the operators are written once over it. All of it has internal linkage (see half.hpp).
#pragma once

#include "gpu/kernels/half.hpp"
#include "gpu/kernels/unroll.hpp"
#include "model/quantised_block.hpp"

#include <immintrin.h>

#include <cstddef>
#include <cstdint>
#include <utility>

namespace lamella::gpu {
namespace {

struct lanes {
  using vec = __m512;

  // Rows x panels of the tiles of a product: as many sums as the registers hold. Under the thread
  // sanitizer they would compile for a quarter of an hour; smaller ones touch the same memory.
#if defined(__SANITIZE_THREAD__)
  static constexpr int quantised_rows = 3, tall_rows = 4;
#else
  static constexpr int quantised_rows = 6;
  static constexpr int tall_rows = 8; ///< of one panel
#endif
  static constexpr int quantised_panels = 2, single_row_panels = 4;
  static constexpr int plain_rows = 8, plain_panels = 2;
  /// Queries that share a tile of K and V.
  static constexpr int queries = 4;
  /// Rows of K, 1, 2 or 4, and vectors of V that so many queries take at once.
  static constexpr int key_rows(int) { return 4; }
  static constexpr int value_vectors(int) { return 4; }
  /// Whether the four quarters of a tile of scores are unrolled: 2 to 4 % faster here with 128
  /// elements, no faster elsewhere, and more code to compile.
  static constexpr bool unrolled_quarters = true;
  /// Positions at once for sixteen queries that are lanes (attention_rows.hpp).
  static constexpr int row_positions = 4;
  /// How far ahead of its use the cache is fetched.
  static constexpr uint32_t prefetch_bytes = 16384;

  static vec zero() { return _mm512_setzero_ps(); }
  static vec set(float x) { return _mm512_set1_ps(x); }
  static vec load(const float* p) { return _mm512_loadu_ps(p); }
  static vec load_f16(const void* p) {
    return _mm512_cvtph_ps(_mm256_loadu_si256(static_cast<const __m256i*>(p)));
  }
  static vec load_bf16(const void* p) {
    auto v = _mm256_loadu_si256(static_cast<const __m256i*>(p));
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(v), 16));
  }
  static vec load_i8(const void* p) {
    auto all = _mm_loadu_si128(static_cast<const __m128i*>(p));
    return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(all));
  }
  static vec load_i32(const int32_t* p) { return _mm512_cvtepi32_ps(_mm512_loadu_si512(p)); }
  static void store(float* p, vec v) { _mm512_storeu_ps(p, v); }
  static void store_f16(void* p, vec v) {
    _mm256_storeu_si256(static_cast<__m256i*>(p),
                        _mm512_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
  }
  static vec load_first(const float* p, uint32_t n) { return _mm512_maskz_loadu_ps(first(n), p); }
  static void store_first(float* p, vec v, uint32_t n) { _mm512_mask_storeu_ps(p, first(n), v); }

  static vec add(vec a, vec b) { return _mm512_add_ps(a, b); }
  static vec sub(vec a, vec b) { return _mm512_sub_ps(a, b); }
  static vec mul(vec a, vec b) { return _mm512_mul_ps(a, b); }
  static vec div(vec a, vec b) { return _mm512_div_ps(a, b); }
  /// b where either is NaN.
  static vec max(vec a, vec b) { return _mm512_max_ps(a, b); }
  static vec min(vec a, vec b) { return _mm512_min_ps(a, b); }
  /// a * b + c, fused where the instruction set can.
  static vec fma(vec a, vec b, vec c) { return _mm512_fmadd_ps(a, b, c); }
  static vec round(vec v) {
    return _mm512_roundscale_ps(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  }
  /// v * 2^n for whole n in [-126, 127] and normal results.
  static vec times_power_of_two(vec v, vec n) { return _mm512_scalef_ps(v, n); }
  /// v, but 0 where x < limit.
  static vec zero_below(vec v, vec x, float limit) {
    return _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(x, set(limit), _CMP_NLT_UQ), v);
  }
  /// The first n lanes of v, `other` in the rest.
  static vec keep_first(vec v, uint32_t n, float other) {
    return _mm512_mask_mov_ps(set(other), first(n), v);
  }

  /// Sum and maximum of the lanes, always in the same order.
  static float sum(vec v) {
    auto half = _mm256_add_ps(_mm512_castps512_ps256(v), _mm512_extractf32x8_ps(v, 1));
    auto quarter = _mm_add_ps(_mm256_castps256_ps128(half), _mm256_extractf128_ps(half, 1));
    auto pair = _mm_add_ps(quarter, _mm_movehl_ps(quarter, quarter));
    return _mm_cvtss_f32(_mm_add_ss(pair, _mm_movehdup_ps(pair)));
  }
  static float maximum(vec v) {
    auto half = _mm256_max_ps(_mm512_castps512_ps256(v), _mm512_extractf32x8_ps(v, 1));
    auto quarter = _mm_max_ps(_mm256_castps256_ps128(half), _mm256_extractf128_ps(half, 1));
    auto pair = _mm_max_ps(quarter, _mm_movehl_ps(quarter, quarter));
    return _mm_cvtss_f32(_mm_max_ss(pair, _mm_movehdup_ps(pair)));
  }

  /// Sums of four vectors at once, to be completed by `sums`.
  using partial = __m512;
  static partial partial_sums(vec a, vec b, vec c, vec d) {
    auto ab = _mm512_castps_pd(add(_mm512_unpacklo_ps(a, b), _mm512_unpackhi_ps(a, b)));
    auto cd = _mm512_castps_pd(add(_mm512_unpacklo_ps(c, d), _mm512_unpackhi_ps(c, d)));
    return add(_mm512_castpd_ps(_mm512_unpacklo_pd(ab, cd)),
               _mm512_castpd_ps(_mm512_unpackhi_pd(ab, cd)));
  }
  /// Lane 4 i + j is the sum of vector j of the i-th call of partial_sums.
  static vec sums(partial p0, partial p1, partial p2, partial p3) {
    auto a = add(_mm512_shuffle_f32x4(p0, p1, 0x88), _mm512_shuffle_f32x4(p0, p1, 0xdd));
    auto b = add(_mm512_shuffle_f32x4(p2, p3, 0x88), _mm512_shuffle_f32x4(p2, p3, 0xdd));
    return add(_mm512_shuffle_f32x4(a, b, 0x88), _mm512_shuffle_f32x4(a, b, 0xdd));
  }
  /// How `sums` and `sum` add the lanes of a vector: the two halves of the first step are so many
  /// lanes apart, and so on (sum_in_order).
  using order_of_sums = std::integer_sequence<int, 8, 4, 1, 2>;
  using order_of_sum = std::integer_sequence<int, 1, 2, 4, 8>;

  /// Sixteen numbers of 4 bits, from the low or the high nibbles of sixteen bytes.
  // Both halves of the same bytes share the load that spreads them.
  static vec load_low_u4(const void* p) {
    return _mm512_cvtepi32_ps(
        _mm512_and_si512(_mm512_cvtepu8_epi32(load_16(p)), _mm512_set1_epi32(15)));
  }
  static vec load_high_u4(const void* p) {
    return _mm512_cvtepi32_ps(_mm512_srli_epi32(_mm512_cvtepu8_epi32(load_16(p)), 4));
  }

  /// The first, or the second, of two bf16 in all lanes.
  static vec first_bf16(const void* p) {
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_set1_epi32(load_as<int>(p)), 16));
  }
  static vec second_bf16(const void* p) {
    return _mm512_castsi512_ps(
        _mm512_and_si512(_mm512_set1_epi32(load_as<int>(p)), _mm512_set1_epi32(-65536)));
  }

  // --- operands of tiles ---

  /// Each lane's first 16 bits of x, a bf16, and those of y behind them.
  static void store_bf16_pairs(void* p, vec x, vec y) {
    constexpr int a_or_b_and_c = 0xf8;
    _mm512_storeu_si512(p, _mm512_ternarylogic_epi32(_mm512_srli_epi32(_mm512_castps_si512(x), 16),
                                                     _mm512_castps_si512(y),
                                                     _mm512_set1_epi32(-65536), a_or_b_and_c));
  }
  /// The same of x and y rounded to bf16, halves away from 0.
  static void store_rounded_pairs(void* p, vec x, vec y) {
    const auto half = _mm512_set1_epi32(0x8000);
    store_bf16_pairs(p, _mm512_castsi512_ps(_mm512_add_epi32(_mm512_castps_si512(x), half)),
                     _mm512_castsi512_ps(_mm512_add_epi32(_mm512_castps_si512(y), half)));
  }
  /// x rounded to bf16, halves away from 0.
  static vec rounded_bf16(vec x) {
    const auto raised = _mm512_add_epi32(_mm512_castps_si512(x), _mm512_set1_epi32(0x8000));
    return _mm512_castsi512_ps(_mm512_and_si512(raised, _mm512_set1_epi32(-65536)));
  }
  /// Each lane's first 16 bits, one behind the other.
  static void store_bf16(void* p, vec x) {
    _mm256_storeu_si256(static_cast<__m256i*>(p),
                        _mm512_cvtepi32_epi16(_mm512_srli_epi32(_mm512_castps_si512(x), 16)));
  }
  /// 16 halves, and the 16 behind them, side by side as pairs.
  static void pair_halves(const void* from, void* to) {
    struct alignas(64) places {
      uint16_t v[32] = {};
      constexpr places() {
        for (uint16_t i = 0; i < 32; ++i) v[i] = static_cast<uint16_t>(i / 2 + i % 2 * 16);
      }
    };
    static constexpr places order;
    _mm512_storeu_si512(
        to, _mm512_permutexvar_epi16(_mm512_load_si512(order.v), _mm512_loadu_si512(from)));
  }
  /// What the first 16 bits of x leave of it: exact.
  static vec beyond_bf16(vec x) {
    return sub(x, _mm512_castsi512_ps(
                      _mm512_and_si512(_mm512_castps_si512(x), _mm512_set1_epi32(-65536))));
  }
  /// Rows and columns of 16 x 16 numbers of 32 bits exchanged.
  static void transpose(const void* from, void* to) {
    transpose_first(static_cast<const float*>(from), 16, static_cast<float*>(to), 16);
  }
  /// The same for the first `columns` only, which become rows `stride` floats apart.
  static void transpose_first(const float* from, uint32_t columns, float* to, size_t stride) {
    if (columns <= 4) return transpose_four(from, columns, to, stride);
    __m512 quads[16]; // [4 i + j]: column 4 l + j, of rows 4 i to 4 i + 3, in part l
    unroll<4>([&](auto i) __attribute__((always_inline)) {
      const auto* rows = from + 64 * i;
      const auto ab = _mm512_unpacklo_ps(load(rows), load(rows + 16)),
                 ab2 = _mm512_unpackhi_ps(load(rows), load(rows + 16)),
                 cd = _mm512_unpacklo_ps(load(rows + 32), load(rows + 48)),
                 cd2 = _mm512_unpackhi_ps(load(rows + 32), load(rows + 48));
      quads[4 * i] = _mm512_shuffle_ps(ab, cd, 0x44);
      quads[4 * i + 1] = _mm512_shuffle_ps(ab, cd, 0xee);
      quads[4 * i + 2] = _mm512_shuffle_ps(ab2, cd2, 0x44);
      quads[4 * i + 3] = _mm512_shuffle_ps(ab2, cd2, 0xee);
    });
    unroll<4>([&](auto j) __attribute__((always_inline)) {
      const auto a = _mm512_shuffle_f32x4(quads[j], quads[4 + j], 0x88),
                 b = _mm512_shuffle_f32x4(quads[j], quads[4 + j], 0xdd),
                 c = _mm512_shuffle_f32x4(quads[8 + j], quads[12 + j], 0x88),
                 d = _mm512_shuffle_f32x4(quads[8 + j], quads[12 + j], 0xdd);
      const auto put = [&](uint32_t column, vec v) __attribute__((always_inline)) {
        if (column < columns) store(to + column * stride, v);
      };
      put(j, _mm512_shuffle_f32x4(a, c, 0x88));
      put(4 + j, _mm512_shuffle_f32x4(b, d, 0x88));
      put(8 + j, _mm512_shuffle_f32x4(a, c, 0xdd));
      put(12 + j, _mm512_shuffle_f32x4(b, d, 0xdd));
    });
  }

  // --- products of bytes ---
  // `bits` are those of the larger operands' type: 2 to 6, or 8.

  /// Operands of 8 bits are multiplied as unsigned bytes, raised by 128.
  static constexpr bool raised_bytes = true;
  using values = __m512i;      ///< four elements of 16 outputs
  using activations = __m512i; ///< the same four in each lane
  template <int bits> using block_sums = __m512i;

  static values load_codes(const std::byte* p) { return _mm512_loadu_si512(p); }
  /// Codes of 8 bits as operands.
  static values operands_of_bytes(values codes) { return codes; }
  /// Codes of 4 bits as the levels that they choose (iq4).
  static values operands_of_levels(values codes) {
    const auto levels = _mm_set_epi64x(static_cast<int64_t>(model::iq4_levels_high),
                                       static_cast<int64_t>(model::iq4_levels_low));
    return _mm512_shuffle_epi8(_mm512_broadcast_i32x4(levels), codes);
  }
  /// Bits of each byte, moved down by `shift` (up where it is negative): those in `mask`.
  template <int shift, int mask> static values take_bits(values v) {
    return _mm512_and_si512(moved<shift>(v), _mm512_set1_epi8(mask));
  }
  /// The same, put into `codes`, which has none of them.
  template <int shift, int mask> static values put_bits(values codes, values v) {
    constexpr int a_or_b_and_c = 0xf8;
    return _mm512_ternarylogic_epi32(codes, moved<shift>(v), _mm512_set1_epi8(mask), a_or_b_and_c);
  }
  /// Operands as signed bytes: `zero` is the one that stands for 0.
  template <int zero> static void store_signed(int8_t* p, values v) {
    _mm512_storeu_si512(p, _mm512_sub_epi8(v, _mm512_set1_epi8(static_cast<char>(zero))));
  }
  static activations broadcast(const int8_t* p) {
    int four;
    __builtin_memcpy(&four, p, sizeof four);
    return _mm512_set1_epi32(four);
  }
  /// Groups of four elements that are taken in one step.
  template <int bits> static constexpr int groups_at_once = 1;
  /// Sums begin at `bias`; products are added exactly; `finish` makes them fp32.
  template <int bits> static __m512i start(int32_t bias) { return _mm512_set1_epi32(bias); }
  template <int bits>
  static __m512i accumulate(__m512i sums, const values (&w)[1], const activations (&a)[1]) {
    return _mm512_dpbusd_epi32(sums, w[0], a[0]);
  }
  template <int bits> static vec finish(__m512i sums, int32_t) { return _mm512_cvtepi32_ps(sums); }

  /// Bits of the largest |x| of 32, as an integer: larger than those of infinity for a NaN.
  static uint32_t absolute_maximum_bits(const float* x) {
    auto low = _mm512_and_si512(_mm512_castps_si512(load(x)), _mm512_set1_epi32(0x7fffffff));
    auto high = _mm512_and_si512(_mm512_castps_si512(load(x + 16)), _mm512_set1_epi32(0x7fffffff));
    return _mm512_reduce_max_epu32(_mm512_max_epu32(low, high));
  }
  /// q = round(x * factor) of 32 elements; returns their sum.
  static int32_t quantise(const float* x, float factor, int8_t* q) {
    auto low = _mm512_cvtps_epi32(mul(load(x), set(factor)));
    auto high = _mm512_cvtps_epi32(mul(load(x + 16), set(factor)));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(q), _mm512_cvtepi32_epi8(low));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(q + 16), _mm512_cvtepi32_epi8(high));
    return _mm512_reduce_add_epi32(_mm512_add_epi32(low, high));
  }

private:
  static void transpose_four(const float* from, uint32_t columns, float* to, size_t stride) {
    const auto rows = [&](int i) __attribute__((always_inline)) { // i, i + 4, i + 8, i + 12
      const auto part = [&](int row) __attribute__((always_inline)) {
        return _mm_loadu_ps(from + 16 * row);
      };
      auto v = _mm512_castps128_ps512(part(i));
      v = _mm512_insertf32x4(v, part(i + 4), 1);
      v = _mm512_insertf32x4(v, part(i + 8), 2);
      return _mm512_insertf32x4(v, part(i + 12), 3);
    };
    const auto a = rows(0), b = rows(1), c = rows(2), d = rows(3);
    const auto ab = _mm512_unpacklo_ps(a, b), cd = _mm512_unpacklo_ps(c, d);
    store(to, _mm512_shuffle_ps(ab, cd, 0x44));
    if (columns > 1) store(to + stride, _mm512_shuffle_ps(ab, cd, 0xee));
    const auto ab2 = _mm512_unpackhi_ps(a, b), cd2 = _mm512_unpackhi_ps(c, d);
    if (columns > 2) store(to + 2 * stride, _mm512_shuffle_ps(ab2, cd2, 0x44));
    if (columns > 3) store(to + 3 * stride, _mm512_shuffle_ps(ab2, cd2, 0xee));
  }
  static __m128i load_16(const void* p) { return _mm_loadu_si128(static_cast<const __m128i*>(p)); }
  template <int shift> static __m512i moved(__m512i v) {
    if constexpr (shift > 0)
      return _mm512_srli_epi16(v, shift);
    else if constexpr (shift < 0)
      return _mm512_slli_epi16(v, -shift);
    else
      return v;
  }
  static __mmask16 first(uint32_t n) { return static_cast<__mmask16>((1u << n) - 1); }
};

} // namespace
} // namespace lamella::gpu
