/// Matrix instructions of the matmuls on the emulated device.
#pragma once

#include "tests/emulated/launch.hpp"

#include <cuda_bf16.h>

#include <type_traits>

namespace lamella::gpu::cuda {

/// One 16-bit element of shared memory.
template <class T> float element_at(uint32_t address) {
  T value;
  std::memcpy(static_cast<void*>(&value), emulated::shared_at(address, 2), 2);
  if constexpr (std::is_same_v<T, __half>)
    return __half2float(value);
  else
    return __bfloat162float(value);
}

template <class T> float element_of(uint64_t word, unsigned which) {
  const auto bits = static_cast<uint16_t>(word >> (16 * which));
  T value;
  std::memcpy(static_cast<void*>(&value), &bits, 2);
  if constexpr (std::is_same_v<T, __half>)
    return __half2float(value);
  else
    return __bfloat162float(value);
}

namespace mma {

inline uint32_t shared_address(const void* p) {
  return static_cast<uint32_t>(static_cast<const std::byte*>(p) - emulated::current.shared.data());
}
inline void copy_16(uint32_t to, const void* from, bool valid) {
  copy_async<load_hint::fetch_128>(to, from, valid);
}
inline void prefetch_line(const void*) {}
inline float load_from_l2(const float* from) { return *from; }
inline void commit() { commit_copies(); }
template <int pending> void wait_all_but() { await_copies<pending>(); }
inline void load_matrices(uint32_t (&to)[4], uint32_t at) { load_8x8<false>(to, at); }

/// m16n8k16: exact sums over 16 inputs, rounded once onto c.
template <class T>
void multiply_add(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
  auto& words = emulated::own_warp().words;
  const auto lane = emulated::lane();
  std::copy(a, a + 4, words[lane]);
  words[lane][4] = b0;
  words[lane][5] = b1;
  emulated::wait_warp();
  for (unsigned i = 0; i < 4; ++i) {
    const unsigned row = lane / 4 + i / 2 * 8, column = lane % 4 * 2 + i % 2;
    double sum = c[i];
    for (unsigned k = 0; k < 16; ++k)
      sum += double{element_of<T>(words[row % 8 * 4 + k % 8 / 2][row / 8 + k / 8 * 2], k % 2)}
             * element_of<T>(words[column * 4 + k % 8 / 2][4 + k / 8], k % 2);
    c[i] = static_cast<float>(sum);
  }
  emulated::wait_warp();
}

} // namespace mma

namespace wgmma {

/// Multiplications that a thread has started, its share of each. They read shared memory as late as
/// they may: when their group is waited for. What is overwritten too early shows.
using share = std::function<void()>;
inline std::vector<std::vector<std::vector<share>>> started; ///< by thread, by group

inline std::vector<std::vector<share>>& own_groups() {
  if (started.size() < emulated::current.threads.size())
    started.resize(emulated::current.threads.size());
  auto& groups = started[threadIdx.x];
  if (groups.empty()) groups.emplace_back();
  return groups;
}

inline void fence() {}
inline void publish_shared() {}
inline void commit() { own_groups().emplace_back(); }
template <int pending> void wait_all_but() {
  auto& groups = own_groups();
  while (groups.size() > pending + 1) {
    for (const auto& one : groups.front()) one();
    groups.erase(groups.begin());
  }
}

/// Where element (row, k) of a tile lies: rows of 128 bytes, whose 16-byte chunks are exchanged by
/// the bits of the address that count rows of eight (the 128-byte swizzle).
inline uint32_t swizzled_address(uint64_t tile, unsigned row, unsigned k) {
  const auto start = static_cast<uint32_t>(tile & 0x3fff) << 4;
  const auto plain = start + row * 128 + k * 2;
  return plain ^ ((plain >> 7 & 7) << 4);
}

template <class T, size_t size> void multiply_add(float (&d)[size], uint64_t a, uint64_t b) {
  if (a >> 62 != 1 || b >> 62 != 1 || (a >> 32 & 0x3fff) != 64 || (b >> 32 & 0x3fff) != 64)
    throw std::logic_error{"a tile that is not laid out as rows of 128 swizzled bytes"};
  const unsigned warp = threadIdx.x / 32 % 4, lane = emulated::lane();
  own_groups().back().push_back([&d, a, b, warp, lane] {
    for (unsigned i = 0; i < size; ++i) {
      const unsigned row = warp * 16 + lane / 4 + i / 2 % 2 * 8;
      const unsigned column = i / 4 * 8 + lane % 4 * 2 + i % 2;
      double sum = d[i];
      for (unsigned k = 0; k < 16; ++k)
        sum += double{element_at<T>(swizzled_address(a, row, k))}
               * element_at<T>(swizzled_address(b, column, k));
      d[i] = static_cast<float>(sum);
    }
  });
}

} // namespace wgmma
} // namespace lamella::gpu::cuda
