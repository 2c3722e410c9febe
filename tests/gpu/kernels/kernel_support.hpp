/// What the kernel tests share: random inputs, packed weights, memory that must not be read.
#pragma once

#include "gpu/kernels/operators.hpp"
#include "tests/gpu/kernels/tile_twin.hpp"

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

namespace lamella::gpu::test {

/// Every set this machine can run, and the twin of the one with tiles; `with_reference` adds the
/// oracle itself.
inline std::vector<const operators*> sets(bool with_reference) {
  std::vector<const operators*> result;
  if (with_reference) result.push_back(&reference_operators());
  for (auto name : {"portable", "avx2", "avx512", "amx", "twin"}) {
    std::string reason;
    if (const auto* set = find_set(name, &reason); set != nullptr)
      result.push_back(set);
    else
      MESSAGE("not tested here: " << reason);
  }
  return result;
}

/// Random numbers of a test: the seed is printed with a failure.
class randomness {
public:
  explicit randomness(uint64_t seed) : engine_{seed} {}

  float normal() { return normal_(engine_); }
  uint32_t below(uint32_t bound) {
    return std::uniform_int_distribution<uint32_t>{0, bound - 1}(engine_);
  }
  std::vector<float> normals(size_t count) {
    std::vector<float> result(count);
    for (auto& x : result) x = normal();
    return result;
  }
  std::mt19937_64& engine() { return engine_; }

private:
  std::mt19937_64 engine_;
  std::normal_distribution<float> normal_{0, 1};
};

/// Not-a-number in every float and in every pair of bytes: what nobody may read.
inline std::vector<float> poisoned(size_t count) {
  return std::vector<float>(count, std::numeric_limits<float>::quiet_NaN());
}

/// Threads and scratch; the scratch is poisoned so that reading it unwritten shows.
struct machine {
  explicit machine(unsigned threads) : workers{threads} {
    arena::scope scope{scratch};
    constexpr size_t count = 1 << 20;
    auto* p = scratch.allocate<float>(count);
    std::fill_n(p, count, std::numeric_limits<float>::quiet_NaN());
  }
  kernel_context context() { return {workers, scratch}; }

  team workers;
  arena scratch;
};

/// 16-bit floats by the definition, for making inputs.
inline uint16_t half_of(float value) {
  auto magnitude = std::fabs(value);
  uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  if (magnitude == 0) return sign;
  int exponent = std::max(std::ilogb(magnitude), -14);
  auto steps = std::nearbyint(std::ldexp(magnitude, 10 - exponent)); // round half to even
  auto bits = static_cast<int>(steps) + (exponent + 14) * 1024;
  return static_cast<uint16_t>(sign | bits);
}

/// Where the halves of a quantised block lie: what all its elements are multiplied with, and where
/// there is one, what is added or taken away; and the middle of the codes over that.
struct half_places {
  size_t d;
  std::optional<size_t> m{};
  float middle = 0;
};

inline half_places half_places_of(model::tensor_type type) {
  switch (type) {
  case model::tensor_type::q4_1:
  case model::tensor_type::q4_k:
    return {0, 2, 7.5f};
  case model::tensor_type::q5_1:
  case model::tensor_type::q5_k:
    return {0, 2, 15.5f};
  case model::tensor_type::q2_k:
    return {80, 82, 1.5f};
  case model::tensor_type::q3_k:
    return {108};
  case model::tensor_type::q6_k:
    return {208};
  default:
    return {0};
  }
}

/// Random bytes as a quantised block, with halves that make its elements ordinary numbers on both
/// sides of 0.
inline void fill_block(model::tensor_type type, std::byte* block, randomness& random) {
  for (uint32_t i = 0; i < model::block_bytes(type); ++i)
    block[i] = static_cast<std::byte>(random.below(256));
  const auto put = [&](size_t at, float value) {
    const auto half = half_of(value);
    std::memcpy(block + at, &half, sizeof half);
  };
  const bool super = model::block_elements(type) == 256;
  const float d = (std::fabs(random.normal()) / 10 + 0.01f) / (super ? 32 : 1);
  const auto places = half_places_of(type);
  put(places.d, d);
  // That of a super-block is taken away.
  if (places.m) put(*places.m, d * places.middle * (super ? 1 : -1) * (1 + random.normal() / 10));
}

/// A matrix in the form of the file, and packed for a set.
struct weights {
  weights(model::tensor_type stored_as, uint32_t n, uint32_t k, randomness& random)
      : type{stored_as}, outputs{n}, inputs{k}, file(n * model::row_bytes(stored_as, k)) {
    using model::tensor_type;
    const auto bytes = model::block_bytes(type);
    for (size_t at = 0; at < file.size(); at += bytes) {
      if (model::block_elements(type) != 1) {
        fill_block(type, file.data() + at, random);
        continue;
      }
      const auto x = random.normal();
      const auto half = type == tensor_type::f16
                            ? half_of(x)
                            : static_cast<uint16_t>(std::bit_cast<uint32_t>(x) >> 16);
      if (type == tensor_type::f32)
        std::memcpy(file.data() + at, &x, sizeof x);
      else
        std::memcpy(file.data() + at, &half, sizeof half);
    }
  }

  /// 64-byte aligned; lives as long as this.
  packed_matrix packed(const operators& set, team& workers) {
    auto bytes = set.packed_bytes(type, outputs, inputs);
    storage.emplace_back(new std::byte[bytes + 128]);
    auto address = reinterpret_cast<uintptr_t>(storage.back().get());
    auto* data = storage.back().get() + (64 - address % 64);
    std::memset(storage.back().get(), 0xee, bytes + 128);
    set.pack(type, file.data(), outputs, inputs, data, workers);
    CHECK(data[bytes] == std::byte{0xee}); // packing stays within its bytes
    return {type, outputs, inputs, data};
  }

  model::tensor_type type;
  uint32_t outputs, inputs;
  std::vector<std::byte> file;
  std::vector<std::unique_ptr<std::byte[]>> storage;
};

/// Root mean square of the difference, relative to that of `expected`.
inline double relative_rms(std::span<const float> actual, std::span<const float> expected) {
  REQUIRE(actual.size() == expected.size());
  double difference = 0, size = 0;
  for (size_t i = 0; i < actual.size(); ++i) {
    difference += std::pow(double{actual[i]} - expected[i], 2);
    size += std::pow(double{expected[i]}, 2);
  }
  return std::sqrt(difference / std::max(size, 1e-300));
}

template <class T> bool same_bytes(std::span<const T> a, std::span<const T> b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
}

} // namespace lamella::gpu::test
