/// K and V on their way between caches, in the instructions of the set that includes this. All of
/// it has internal linkage (see half.hpp).
#pragma once

#include "gpu/kernels/operators.hpp"

#if defined(__AVX2__)
#include <immintrin.h>
#endif

#include <cstring>

namespace lamella::gpu {
namespace {

/// The digest of words whose first one has this index. Multiplying word by word in general
/// registers takes longer than copying the words.
inline uint64_t digest_of_words(const std::byte* data, size_t bytes, uint64_t index) {
  uint64_t sum = 0;
  size_t i = 0;
#if defined(__AVX512DQ__)
  const auto steps = _mm512_setr_epi64(0, 1, 2, 3, 4, 5, 6, 7);
  const auto places = _mm512_add_epi64(_mm512_set1_epi64(static_cast<int64_t>(index)), steps);
  const auto factor = static_cast<int64_t>(digest_factor);
  auto factors = _mm512_mullo_epi64(places, _mm512_set1_epi64(factor));
  const auto next = _mm512_slli_epi64(_mm512_set1_epi64(factor), 3);
  auto sums = _mm512_setzero_si512();
  for (; i + 32 <= bytes; i += 32, factors = _mm512_add_epi64(factors, next)) {
    const auto words =
        _mm512_cvtepu32_epi64(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(data + i)));
    const auto odd = _mm512_or_epi64(factors, _mm512_set1_epi64(1));
    sums = _mm512_add_epi64(sums, _mm512_mullo_epi64(words, odd));
  }
  sum = static_cast<uint64_t>(_mm512_reduce_add_epi64(sums));
#elif defined(__AVX2__)
  alignas(32) uint64_t first[4];
  for (uint64_t k = 0; k < 4; ++k) first[k] = (index + k) * digest_factor;
  auto factors = _mm256_load_si256(reinterpret_cast<const __m256i*>(first));
  const auto next = _mm256_set1_epi64x(static_cast<int64_t>(4 * digest_factor));
  auto low = _mm256_setzero_si256(), high = _mm256_setzero_si256(); // of words times half factors
  for (; i + 16 <= bytes; i += 16, factors = _mm256_add_epi64(factors, next)) {
    const auto words =
        _mm256_cvtepu32_epi64(_mm_loadu_si128(reinterpret_cast<const __m128i*>(data + i)));
    const auto odd = _mm256_or_si256(factors, _mm256_set1_epi64x(1));
    low = _mm256_add_epi64(low, _mm256_mul_epu32(words, odd));
    high = _mm256_add_epi64(high, _mm256_mul_epu32(words, _mm256_srli_epi64(odd, 32)));
  }
  alignas(32) uint64_t parts[4];
  _mm256_store_si256(reinterpret_cast<__m256i*>(parts),
                     _mm256_add_epi64(low, _mm256_slli_epi64(high, 32)));
  for (const auto part : parts) sum += part;
#endif
  for (index += i / 4; i < bytes; i += 4, ++index) {
    uint32_t word;
    std::memcpy(&word, data + i, 4);
    sum += word * (index * digest_factor | 1);
  }
  return sum;
}

/// Calls copy(place in the cache, place in the packed rows, bytes) for K and V of every row, and
/// adds what `counted` names of the two to the digest.
template <class F, class G> void copy_kv(const copy_kv_args& args, F copy, G counted) {
  const auto half = args.head_count * args.kv.head_bytes();
  const auto k = args.kv.k_offset(args.first_head);
  const auto v = args.kv.v_offset(args.first_head);
  const auto stride = args.kv.row_bytes();
  auto* packed = args.packed;
  auto word = args.first_word;
  for (const auto& run : args.runs)
    for (uint32_t i = 0; i < run.length; ++i, packed += 2 * half, word += 2 * half / 4) {
      auto* row = args.kv.rows + (size_t{run.first} + i) * stride;
      copy(row + k, packed, half);
      copy(row + v, packed + half, half);
      *args.digest += digest_of_words(counted(row + k, packed), half, word);
      *args.digest += digest_of_words(counted(row + v, packed + half), half, word + half / 4);
    }
}

// The digest is of the cache on both sides: the copies and the frame between them are checked as
// well. Of rows that are added only the frame is there.

void gather_kv(const copy_kv_args& args, kernel_context) {
  copy_kv(
      args,
      [](std::byte* row, std::byte* packed, size_t bytes) { std::memcpy(packed, row, bytes); },
      [](const std::byte* row, const std::byte*) { return row; });
}

void scatter_kv(const copy_kv_args& args, kernel_context) {
  if (args.add)
    copy_kv(
        args,
        [](std::byte* __restrict row, const std::byte* __restrict packed, size_t bytes) {
          for (size_t b = 0; b < bytes; ++b) row[b] ^= packed[b];
        },
        [](const std::byte*, const std::byte* packed) { return packed; });
  else
    copy_kv(
        args,
        [](std::byte* row, std::byte* packed, size_t bytes) { std::memcpy(row, packed, bytes); },
        [](const std::byte* row, const std::byte*) { return row; });
}

} // namespace
} // namespace lamella::gpu
