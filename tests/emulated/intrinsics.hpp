/// CUDA's functions and the kernels' primitives on the emulated device.
#pragma once

#include "tests/emulated/device.hpp"

#include <cuda_bf16.h>

inline void __syncwarp() { emulated::wait_warp(); }
inline void __syncthreads() { emulated::wait(emulated::current.all, emulated::current.count); }

template <class T> T __shfl_sync(unsigned, T value, unsigned from, unsigned width = 32) {
  auto& words = emulated::own_warp().words;
  std::memcpy(&words[emulated::lane()][0], &value, sizeof value);
  emulated::wait_warp();
  T result;
  std::memcpy(&result, &words[emulated::lane() / width * width + from % width][0], sizeof result);
  emulated::wait_warp();
  return result;
}
template <class T> T __shfl_xor_sync(unsigned mask, T value, unsigned apart) {
  return __shfl_sync(mask, value, emulated::lane() ^ apart);
}
template <class T> T __shfl_up_sync(unsigned mask, T value, unsigned apart) {
  const auto lane = emulated::lane();
  return __shfl_sync(mask, value, lane >= apart ? lane - apart : lane);
}
inline bool __all_sync(unsigned, bool value) {
  auto& words = emulated::own_warp().words;
  words[emulated::lane()][0] = value;
  emulated::wait_warp();
  const bool result = std::all_of(words, words + 32, [](const auto& w) { return w[0] != 0; });
  emulated::wait_warp();
  return result;
}

inline void __threadfence() {} // one thread runs all
inline uint32_t atomicAdd(uint32_t* at, uint32_t more) {
  const auto before = *at;
  *at += more;
  return before;
}

inline float __fadd_rn(float a, float b) { return a + b; }
inline float __fsub_rn(float a, float b) { return a - b; }
inline float __fmul_rn(float a, float b) { return a * b; }
inline float __fdiv_rn(float a, float b) { return a / b; }
inline float __fmaf_rn(float a, float b, float c) { return std::fma(a, b, c); }
inline float __int_as_float(int bits) {
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}
inline uint32_t __float_as_uint(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}
inline float __uint_as_float(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}
inline uint32_t __byte_perm(uint32_t low, uint32_t high, uint32_t which) {
  const uint64_t bytes = uint64_t{high} << 32 | low;
  uint32_t result = 0;
  for (unsigned i = 0; i < 4; ++i)
    result |= static_cast<uint32_t>(bytes >> (which >> (4 * i) & 7) * 8 & 0xff) << (8 * i);
  return result;
}

namespace lamella::gpu::cuda {

inline float exp2_fast(float x) { return std::exp2(x); }

inline float half_of(uint64_t word, unsigned which) {
  return __half2float(__half{__half_raw{static_cast<uint16_t>(word >> (16 * which))}});
}

inline float bfloat_of(uint64_t word, unsigned which) {
  return __bfloat162float(
      __nv_bfloat16{__nv_bfloat16_raw{static_cast<uint16_t>(word >> (16 * which))}});
}

template <float (*number)(uint64_t, unsigned)>
void multiply_16x8(float (&sum)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  auto& words = emulated::own_warp().words;
  const auto lane = emulated::lane();
  std::copy(a, a + 4, words[lane]);
  std::copy(b, b + 2, words[lane] + 4);
  emulated::wait_warp();
  for (unsigned i = 0; i < 4; ++i) {
    const unsigned row = lane / 4 + i / 2 * 8, column = lane % 4 * 2 + i % 2;
    double total = 0;
    for (unsigned k = 0; k < 16; ++k) {
      const auto x = words[row % 8 * 4 + k % 8 / 2][row / 8 + k / 8 * 2];
      const auto y = words[column * 4 + k % 8 / 2][4 + k / 8];
      total += double{number(x, k % 2)} * number(y, k % 2);
    }
    sum[i] += static_cast<float>(total);
  }
  emulated::wait_warp();
}

inline void multiply_halves(float (&sum)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  multiply_16x8<half_of>(sum, a, b);
}
inline void multiply_bfloats(float (&sum)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  multiply_16x8<bfloat_of>(sum, a, b);
}

template <bool transposed> void load_8x8(uint32_t (&to)[4], uint32_t at) {
  auto& words = emulated::own_warp().words;
  const auto lane = emulated::lane();
  words[lane][0] = at;
  emulated::wait_warp();
  for (unsigned i = 0; i < 4; ++i) {
    uint16_t pair[2];
    for (unsigned k = 0; k < 2; ++k) {
      const unsigned x = lane / 4, y = lane % 4 * 2 + k;
      const auto row = static_cast<uint32_t>(words[i * 8 + (transposed ? y : x)][0]);
      std::memcpy(&pair[k], emulated::shared_at(row + (transposed ? x : y) * 2, 2), 2);
    }
    to[i] = pair[0] | uint32_t{pair[1]} << 16;
  }
  emulated::wait_warp();
}
inline void load_matrices(uint32_t (&to)[4], uint32_t at) { load_8x8<false>(to, at); }
inline void load_transposed(uint32_t (&to)[4], uint32_t at) { load_8x8<true>(to, at); }

inline uint4 load_shared(uint32_t at) {
  uint4 x;
  std::memcpy(&x, emulated::shared_at(at, sizeof x), sizeof x);
  return x;
}
inline uint32_t load_shared_word(uint32_t at) {
  uint32_t x;
  std::memcpy(&x, emulated::shared_at(at, sizeof x), sizeof x);
  return x;
}
inline void store_shared(uint32_t at, uint4 x) {
  std::memcpy(emulated::shared_at(at, sizeof x), &x, sizeof x);
}

inline uint32_t transpose(uint32_t pair) {
  auto& words = emulated::own_warp().words;
  const auto lane = emulated::lane();
  words[lane][0] = pair;
  emulated::wait_warp();
  uint32_t result = 0;
  for (unsigned k = 0; k < 2; ++k) {
    const unsigned row = lane % 4 * 2 + k, column = lane / 4;
    const auto word = words[row * 4 + column / 2][0];
    result |= static_cast<uint32_t>(word >> (column % 2 * 16) & 0xffff) << (16 * k);
  }
  emulated::wait_warp();
  return result;
}

template <load_hint> void copy_async(uint32_t to, const void* from, bool really) {
  std::memset(emulated::shared_at(to, 16), 0xff, 16);
  emulated::self().groups.back().push_back({to, really ? from : nullptr});
}
inline void commit_copies() { emulated::self().groups.emplace_back(); }
template <int pending> void await_copies() {
  auto& groups = emulated::self().groups;
  while (groups.size() > pending + 1) {
    for (const auto& x : groups.front()) {
      auto* to = emulated::shared_at(x.to, 16);
      x.from == nullptr ? std::memset(to, 0, 16) : std::memcpy(to, x.from, 16);
    }
    groups.erase(groups.begin());
  }
}

inline uint32_t shared_memory() { return 0; }

inline void begin_kernel() {} // grids run one after the other

template <class Kernel> cudaError_t resident_blocks(Kernel, unsigned, size_t, int& blocks) {
  blocks = 2; // fewer than there is work
  return cudaSuccess;
}
inline cudaError_t device_limit(cudaDeviceAttr which, int& value) {
  value = which == cudaDevAttrMultiProcessorCount ? 2 : 227 << 10;
  return cudaSuccess;
}

template <class Kernel, class... Args>
cudaError_t launch_blocks(Kernel kernel, uint64_t blocks, unsigned threads, size_t shared,
                          cudaStream_t stream, Args... args) {
  count_launch();
  emulated::run_grid({static_cast<unsigned>(blocks), 1, 1}, threads, shared, stream,
                     [=] { kernel(args...); });
  return cudaSuccess;
}

} // namespace lamella::gpu::cuda

// What the tests call of the runtime and fake_cuda.cpp does not have.
extern "C" {
inline cudaError_t cudaGetDeviceCount(int* count) { return *count = 1, cudaSuccess; }
inline cudaError_t cudaDeviceSynchronize() { return cudaSuccess; }
}
