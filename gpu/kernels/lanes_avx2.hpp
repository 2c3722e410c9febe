/// Sixteen fp32 lanes as two AVX2 registers; see lanes_avx512.hpp.
#pragma once

#include "gpu/kernels/half.hpp"
#include "model/quantised_block.hpp"

#include <immintrin.h>

#include <cstddef>
#include <cstdint>
#include <utility>

namespace lamella::gpu {
namespace {

struct lanes {
  struct vec {
    __m256 a, b;
  };

  // The sums of a block fill half of the sixteen registers. Under the thread sanitizer as in
  // lanes_avx512.hpp.
#if defined(__SANITIZE_THREAD__)
  static constexpr int quantised_rows = 2;
#else
  static constexpr int quantised_rows = 4;
#endif
  static constexpr int quantised_panels = 1, single_row_panels = 2;
  static constexpr int tall_rows = 0;
  static constexpr int plain_rows = 4, plain_panels = 1;
  // Four queries share the widening of K and V. Their sums are kept for a row of K, and for a
  // vector of V, at a time.
  static constexpr int queries = 4, row_positions = 1;
  static constexpr int key_rows(int queries) { return queries > 2 ? 1 : 4 / queries; }
  static constexpr int value_vectors(int queries) { return key_rows(queries); }
  static constexpr bool unrolled_quarters = false;
  static constexpr uint32_t prefetch_bytes = 12288;

  static vec zero() { return {_mm256_setzero_ps(), _mm256_setzero_ps()}; }
  static vec set(float x) { return {_mm256_set1_ps(x), _mm256_set1_ps(x)}; }
  static vec load(const float* p) { return {_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)}; }
  static vec load_f16(const void* p) {
    const auto* halves = static_cast<const __m128i*>(p);
    return {_mm256_cvtph_ps(_mm_loadu_si128(halves)), _mm256_cvtph_ps(_mm_loadu_si128(halves + 1))};
  }
  static vec load_bf16(const void* p) {
    const auto* halves = static_cast<const __m128i*>(p);
    return {widen_bf16(_mm_loadu_si128(halves)), widen_bf16(_mm_loadu_si128(halves + 1))};
  }
  static vec load_i8(const void* p) {
    auto all = _mm_loadu_si128(static_cast<const __m128i*>(p));
    return {_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(all)),
            _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_srli_si128(all, 8)))};
  }
  static void store(float* p, vec v) {
    _mm256_storeu_ps(p, v.a);
    _mm256_storeu_ps(p + 8, v.b);
  }
  static void store_f16(void* p, vec v) {
    constexpr int nearest = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
    auto* halves = static_cast<__m128i*>(p);
    _mm_storeu_si128(halves, _mm256_cvtps_ph(v.a, nearest));
    _mm_storeu_si128(halves + 1, _mm256_cvtps_ph(v.b, nearest));
  }
  static vec load_first(const float* p, uint32_t n) {
    return {_mm256_maskload_ps(p, first(n, 0)),
            n > 8 ? _mm256_maskload_ps(p + 8, first(n, 8)) : _mm256_setzero_ps()};
  }
  static void store_first(float* p, vec v, uint32_t n) {
    _mm256_maskstore_ps(p, first(n, 0), v.a);
    if (n > 8) _mm256_maskstore_ps(p + 8, first(n, 8), v.b);
  }

  static vec add(vec x, vec y) { return {_mm256_add_ps(x.a, y.a), _mm256_add_ps(x.b, y.b)}; }
  static vec sub(vec x, vec y) { return {_mm256_sub_ps(x.a, y.a), _mm256_sub_ps(x.b, y.b)}; }
  static vec mul(vec x, vec y) { return {_mm256_mul_ps(x.a, y.a), _mm256_mul_ps(x.b, y.b)}; }
  static vec div(vec x, vec y) { return {_mm256_div_ps(x.a, y.a), _mm256_div_ps(x.b, y.b)}; }
  static vec max(vec x, vec y) { return {_mm256_max_ps(x.a, y.a), _mm256_max_ps(x.b, y.b)}; }
  static vec min(vec x, vec y) { return {_mm256_min_ps(x.a, y.a), _mm256_min_ps(x.b, y.b)}; }
  static vec fma(vec x, vec y, vec z) {
    return {_mm256_fmadd_ps(x.a, y.a, z.a), _mm256_fmadd_ps(x.b, y.b, z.b)};
  }
  static vec round(vec v) {
    constexpr int nearest = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
    return {_mm256_round_ps(v.a, nearest), _mm256_round_ps(v.b, nearest)};
  }
  static vec times_power_of_two(vec v, vec n) {
    return {_mm256_mul_ps(v.a, power(n.a)), _mm256_mul_ps(v.b, power(n.b))};
  }
  static vec zero_below(vec v, vec x, float limit) {
    auto l = _mm256_set1_ps(limit);
    return {_mm256_and_ps(v.a, _mm256_cmp_ps(x.a, l, _CMP_NLT_UQ)),
            _mm256_and_ps(v.b, _mm256_cmp_ps(x.b, l, _CMP_NLT_UQ))};
  }
  static vec keep_first(vec v, uint32_t n, float other) {
    auto o = _mm256_set1_ps(other);
    return {_mm256_blendv_ps(o, v.a, _mm256_castsi256_ps(first(n, 0))),
            _mm256_blendv_ps(o, v.b, _mm256_castsi256_ps(first(n, 8)))};
  }

  static float sum(vec v) {
    auto half = _mm256_add_ps(v.a, v.b);
    auto quarter = _mm_add_ps(_mm256_castps256_ps128(half), _mm256_extractf128_ps(half, 1));
    auto pair = _mm_add_ps(quarter, _mm_movehl_ps(quarter, quarter));
    return _mm_cvtss_f32(_mm_add_ss(pair, _mm_movehdup_ps(pair)));
  }
  static float maximum(vec v) {
    auto half = _mm256_max_ps(v.a, v.b);
    auto quarter = _mm_max_ps(_mm256_castps256_ps128(half), _mm256_extractf128_ps(half, 1));
    auto pair = _mm_max_ps(quarter, _mm_movehl_ps(quarter, quarter));
    return _mm_cvtss_f32(_mm_max_ss(pair, _mm_movehdup_ps(pair)));
  }

  using partial = __m256;
  static partial partial_sums(vec a, vec b, vec c, vec d) {
    auto ab = _mm256_castps_pd(interleaved_sum(_mm256_add_ps(a.a, a.b), _mm256_add_ps(b.a, b.b)));
    auto cd = _mm256_castps_pd(interleaved_sum(_mm256_add_ps(c.a, c.b), _mm256_add_ps(d.a, d.b)));
    return _mm256_add_ps(_mm256_castpd_ps(_mm256_unpacklo_pd(ab, cd)),
                         _mm256_castpd_ps(_mm256_unpackhi_pd(ab, cd)));
  }
  static vec sums(partial p0, partial p1, partial p2, partial p3) {
    return {
        _mm256_add_ps(_mm256_permute2f128_ps(p0, p1, 0x20), _mm256_permute2f128_ps(p0, p1, 0x31)),
        _mm256_add_ps(_mm256_permute2f128_ps(p2, p3, 0x20), _mm256_permute2f128_ps(p2, p3, 0x31))};
  }
  using order_of_sums = std::integer_sequence<int, 4, 1, 2, 8>;
  using order_of_sum = std::integer_sequence<int, 1, 2, 4, 8>;

  static vec load_low_u4(const void* p) { return widen_u4(load_16(p)); }
  static vec load_high_u4(const void* p) { return widen_u4(_mm_srli_epi16(load_16(p), 4)); }
  static vec first_bf16(const void* p) {
    const auto all = _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_set1_epi32(load_as<int>(p)), 16));
    return {all, all};
  }
  static vec second_bf16(const void* p) {
    const auto all = _mm256_castsi256_ps(
        _mm256_and_si256(_mm256_set1_epi32(load_as<int>(p)), _mm256_set1_epi32(-65536)));
    return {all, all};
  }

  // --- products of bytes ---
#if defined(__AVXVNNI__)
  // dpbusd adds four products of u8 x s8 to a sum of 32 bits, exactly.
  static constexpr bool raised_bytes = true;
#else
  // maddubs adds pairs of u8 x s8 in 16 bits and saturates. Up to 4 bits: eight such pairs stay
  // below 8 * 2 * 15 * 127 = 30480, so a block is summed in 16 bits. 5 and 6 bits: two stay below
  // 2 * 2 * 63 * 127 = 32004 and are then widened. 8 bits: |w| x (a with the sign of w) stays below
  // 2 * 128 * 127 = 32512 for a pair, which is widened at once.

  static constexpr bool raised_bytes = false;
#endif
  struct values {
    __m256i a, b; ///< outputs 0-7 and 8-15
  };
  using activations = __m256i;
  template <int bits> using block_sums = values;

  static values load_codes(const std::byte* p) {
    const auto* v = reinterpret_cast<const __m256i*>(p);
    return {_mm256_loadu_si256(v), _mm256_loadu_si256(v + 1)};
  }
  static values operands_of_bytes(values codes) {
    const auto flip = _mm256_set1_epi8(raised_bytes ? 0 : -128);
    return {_mm256_xor_si256(codes.a, flip), _mm256_xor_si256(codes.b, flip)};
  }
  static values operands_of_levels(values codes) {
    const auto raised = _mm_set_epi64x(static_cast<int64_t>(model::iq4_levels_high),
                                       static_cast<int64_t>(model::iq4_levels_low));
    const auto flip = _mm_set1_epi8(raised_bytes ? 0 : -128);
    const auto levels = _mm256_broadcastsi128_si256(_mm_xor_si128(raised, flip));
    return {_mm256_shuffle_epi8(levels, codes.a), _mm256_shuffle_epi8(levels, codes.b)};
  }
  template <int shift, int mask> static values take_bits(values v) {
    auto m = _mm256_set1_epi8(mask);
    return {_mm256_and_si256(moved<shift>(v.a), m), _mm256_and_si256(moved<shift>(v.b), m)};
  }
  template <int shift, int mask> static values put_bits(values codes, values v) {
    auto taken = take_bits<shift, mask>(v);
    return {_mm256_or_si256(codes.a, taken.a), _mm256_or_si256(codes.b, taken.b)};
  }
  static activations broadcast(const int8_t* p) {
    int four;
    __builtin_memcpy(&four, p, sizeof four);
    return _mm256_set1_epi32(four);
  }
#if defined(__AVXVNNI__)
  template <int bits> static constexpr int groups_at_once = 1;
  template <int bits> static values start(int32_t bias) {
    return {_mm256_set1_epi32(bias), _mm256_set1_epi32(bias)};
  }
  template <int bits>
  static values accumulate(values sums, const values (&w)[1], const activations (&x)[1]) {
    return {_mm256_dpbusd_avx_epi32(sums.a, w[0].a, x[0]),
            _mm256_dpbusd_avx_epi32(sums.b, w[0].b, x[0])};
  }
  template <int bits> static vec finish(values sums, int32_t) {
    return {_mm256_cvtepi32_ps(sums.a), _mm256_cvtepi32_ps(sums.b)};
  }
#else
  template <int bits> static constexpr int groups_at_once = bits == 5 || bits == 6 ? 2 : 1;
  template <int bits> static values start(int32_t) {
    return {_mm256_setzero_si256(), _mm256_setzero_si256()};
  }
  template <int bits>
  static values accumulate(values sums, const values (&w)[groups_at_once<bits>],
                           const activations (&x)[groups_at_once<bits>]) {
    if constexpr (bits <= 4)
      sums = {_mm256_add_epi16(sums.a, _mm256_maddubs_epi16(w[0].a, x[0])),
              _mm256_add_epi16(sums.b, _mm256_maddubs_epi16(w[0].b, x[0]))};
    else if constexpr (bits == 8)
      sums = {_mm256_add_epi32(sums.a, signed_products(w[0].a, x[0])),
              _mm256_add_epi32(sums.b, signed_products(w[0].b, x[0]))};
    else
      sums = {_mm256_add_epi32(sums.a, two_products(w[0].a, x[0], w[1].a, x[1])),
              _mm256_add_epi32(sums.b, two_products(w[0].b, x[0], w[1].b, x[1]))};
    // Sums at once: else the compiler adds at the end of a block, with all products in memory.
    __asm__("" : "+x"(sums.a), "+x"(sums.b));
    return sums;
  }
  template <int bits> static vec finish(values sums, int32_t bias) {
    if constexpr (bits <= 4) {
      auto ones = _mm256_set1_epi16(1);
      sums = {_mm256_madd_epi16(sums.a, ones), _mm256_madd_epi16(sums.b, ones)};
    }
    if constexpr (bits < 8) {
      auto b = _mm256_set1_epi32(bias);
      sums = {_mm256_add_epi32(sums.a, b), _mm256_add_epi32(sums.b, b)};
    }
    return {_mm256_cvtepi32_ps(sums.a), _mm256_cvtepi32_ps(sums.b)};
  }
#endif

  static uint32_t absolute_maximum_bits(const float* x) {
    auto mask = _mm256_set1_epi32(0x7fffffff);
    auto most = _mm256_setzero_si256();
    for (int i = 0; i < 32; i += 8)
      most = _mm256_max_epu32(most,
                              _mm256_and_si256(_mm256_castps_si256(_mm256_loadu_ps(x + i)), mask));
    auto half = _mm_max_epu32(_mm256_castsi256_si128(most), _mm256_extracti128_si256(most, 1));
    half = _mm_max_epu32(half, _mm_shuffle_epi32(half, 0x4e));
    half = _mm_max_epu32(half, _mm_shuffle_epi32(half, 0xb1));
    return static_cast<uint32_t>(_mm_cvtsi128_si32(half));
  }
  static int32_t quantise(const float* x, float factor, int8_t* q) {
    auto f = _mm256_set1_ps(factor);
    __m256i v[4];
    for (int i = 0; i < 4; ++i)
      v[i] = _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_loadu_ps(x + 8 * i), f));
    // Packing works within halves of a register; the permutation puts its words back in order.
    auto words = _mm256_packs_epi16(_mm256_packs_epi32(v[0], v[1]), _mm256_packs_epi32(v[2], v[3]));
    words = _mm256_permutevar8x32_epi32(words, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(q), words);
    auto sum = _mm256_add_epi32(_mm256_add_epi32(v[0], v[1]), _mm256_add_epi32(v[2], v[3]));
    auto half = _mm_add_epi32(_mm256_castsi256_si128(sum), _mm256_extracti128_si256(sum, 1));
    half = _mm_add_epi32(half, _mm_shuffle_epi32(half, 0x4e));
    half = _mm_add_epi32(half, _mm_shuffle_epi32(half, 0xb1));
    return _mm_cvtsi128_si32(half);
  }

private:
  /// All bits set in lanes begin + i < n.
  static __m256i first(uint32_t n, int begin) {
    auto index =
        _mm256_add_epi32(_mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7), _mm256_set1_epi32(begin));
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(n)), index);
  }
  static __m256 widen_bf16(__m128i v) {
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(v), 16));
  }
  static __m256 power(__m256 n) {
    auto exponent = _mm256_add_epi32(_mm256_cvtps_epi32(n), _mm256_set1_epi32(127));
    return _mm256_castsi256_ps(_mm256_slli_epi32(exponent, 23));
  }
  static __m256 interleaved_sum(__m256 x, __m256 y) {
    return _mm256_add_ps(_mm256_unpacklo_ps(x, y), _mm256_unpackhi_ps(x, y));
  }
  static __m128i load_16(const void* p) { return _mm_loadu_si128(static_cast<const __m128i*>(p)); }
  static vec widen_u4(__m128i v) {
    v = _mm_and_si128(v, _mm_set1_epi8(15));
    return {_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(v)),
            _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_srli_si128(v, 8)))};
  }
  template <int shift> static __m256i moved(__m256i v) {
    if constexpr (shift > 0)
      return _mm256_srli_epi16(v, shift);
    else if constexpr (shift < 0)
      return _mm256_slli_epi16(v, -shift);
    else
      return v;
  }
  static __m256i two_products(__m256i v, __m256i x, __m256i w, __m256i y) {
    auto pairs = _mm256_add_epi16(_mm256_maddubs_epi16(v, x), _mm256_maddubs_epi16(w, y));
    return _mm256_madd_epi16(pairs, _mm256_set1_epi16(1));
  }
  static __m256i signed_products(__m256i w, __m256i x) {
    auto pairs = _mm256_maddubs_epi16(_mm256_abs_epi8(w), _mm256_sign_epi8(x, w));
    return _mm256_madd_epi16(pairs, _mm256_set1_epi16(1));
  }
};

} // namespace
} // namespace lamella::gpu
