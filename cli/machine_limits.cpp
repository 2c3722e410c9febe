#include "cli/machine_limits.hpp"

#include "base/team.hpp"
#include "gpu/kernels/sets.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <vector>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace lamella::cli {

namespace {

#if defined(__x86_64__)

constexpr int chains = 12; // independent sums in registers: more than latency times throughput

__attribute__((target("avx512f,avx512vl,avx512vnni"))) int dots_vnni(uint64_t rounds) {
  __m512i sums[chains];
  // Equal sums would be computed once.
#pragma GCC unroll 12
  for (int i = 0; i < chains; ++i) sums[i] = _mm512_set1_epi32(i);
  auto a = _mm512_set1_epi8(3), b = _mm512_set1_epi8(-2);
  for (uint64_t r = 0; r < rounds; ++r) {
#pragma GCC unroll 12
    for (auto& s : sums) s = _mm512_dpbusd_epi32(s, a, b);
    asm volatile("" : "+v"(a), "+v"(b)); // the loop stays a loop
  }
  auto all = sums[0];
#pragma GCC unroll 12
  for (int i = 1; i < chains; ++i) all = _mm512_add_epi32(all, sums[i]);
  alignas(64) int words[16];
  _mm512_store_si512(words, all);
  return words[0];
}

__attribute__((target("avx2"))) int dots_avx2(uint64_t rounds) {
  __m256i sums[chains];
#pragma GCC unroll 12
  for (int i = 0; i < chains; ++i) sums[i] = _mm256_set1_epi32(i);
  auto a = _mm256_set1_epi8(3), b = _mm256_set1_epi8(-2), ones = _mm256_set1_epi16(1);
  for (uint64_t r = 0; r < rounds; ++r) {
#pragma GCC unroll 12
    for (auto& s : sums)
      s = _mm256_add_epi32(s, _mm256_madd_epi16(_mm256_maddubs_epi16(a, b), ones));
    asm volatile("" : "+x"(a), "+x"(b));
  }
  auto all = sums[0];
#pragma GCC unroll 12
  for (int i = 1; i < chains; ++i) all = _mm256_add_epi32(all, sums[i]);
  return _mm256_extract_epi32(all, 0);
}

__attribute__((target("avxvnni"))) int dots_avx_vnni(uint64_t rounds) {
  __m256i sums[chains];
#pragma GCC unroll 12
  for (int i = 0; i < chains; ++i) sums[i] = _mm256_set1_epi32(i);
  auto a = _mm256_set1_epi8(3), b = _mm256_set1_epi8(-2);
  for (uint64_t r = 0; r < rounds; ++r) {
#pragma GCC unroll 12
    for (auto& s : sums) s = _mm256_dpbusd_avx_epi32(s, a, b);
    asm volatile("" : "+x"(a), "+x"(b));
  }
  auto all = sums[0];
#pragma GCC unroll 12
  for (int i = 1; i < chains; ++i) all = _mm256_add_epi32(all, sums[i]);
  return _mm256_extract_epi32(all, 0);
}

#endif

} // namespace

double measure_read_bandwidth(unsigned threads) {
  // With one stream of reads a core has too few cache lines on their way to reach the limit.
  constexpr size_t places = 4;
  constexpr size_t bytes = size_t{512} << 20, piece = size_t{4} << 20;
  constexpr size_t line = 64 / sizeof(uint64_t), apart = piece / places / sizeof(uint64_t);
  std::vector<uint64_t> data(bytes / sizeof(uint64_t), 1);
  team workers{threads};
  std::atomic<uint64_t> sink{0}; // keeps the sums alive
  double best = 0;
  for (int pass = 0; pass < 6; ++pass) {
    const auto began = std::chrono::steady_clock::now();
    workers.for_each(bytes / piece, [&](size_t i) {
      const auto* first = data.data() + i * (piece / sizeof(uint64_t));
      uint64_t sums[line] = {};
      for (size_t k = 0; k < apart; k += line)
        for (size_t place = 0; place < places; ++place) {
          const auto* p = first + place * apart + k;
          for (size_t j = 0; j < line; ++j) sums[j] += p[j];
        }
      uint64_t total = 0;
      for (auto s : sums) total += s;
      sink.fetch_add(total, std::memory_order_relaxed);
    });
    const auto took = std::chrono::duration<double>(std::chrono::steady_clock::now() - began);
    best = std::max(best, static_cast<double>(bytes) / took.count() / 1e9);
  }
  return best;
}

double measure_int8_rate(unsigned threads) {
#if defined(__x86_64__)
  const bool vnni = __builtin_cpu_supports("avx512vnni") && __builtin_cpu_supports("avx512vl");
  if (!vnni && !__builtin_cpu_supports("avx2")) return 0;
  constexpr uint64_t rounds = 1'000'000;
  const double operations = static_cast<double>(rounds) * chains * (vnni ? 128 : 64) * threads;
  team workers{threads};
  std::atomic<int> sink{0};
  double best = 0;
  for (int pass = 0; pass < 4; ++pass) {
    const auto began = std::chrono::steady_clock::now();
    workers.for_each(threads, [&](size_t) {
      const auto dots = vnni ? dots_vnni : gpu::has_avx_vnni() ? dots_avx_vnni : dots_avx2;
      sink.fetch_add(dots(rounds), std::memory_order_relaxed);
    });
    const auto took = std::chrono::duration<double>(std::chrono::steady_clock::now() - began);
    best = std::max(best, operations / took.count() / 1e9);
  }
  return best;
#else
  static_cast<void>(threads);
  return 0;
#endif
}

} // namespace lamella::cli
