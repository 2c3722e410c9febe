/// Counter-based random numbers: Philox4x32-10 (Salmon, Moraes, Dror, Shaw: "Parallel random
/// numbers: as easy as 1, 2, 3", 2011). No state, so a sample can be repeated on any machine.
#pragma once

#include <array>
#include <cstdint>

namespace lamella::gpu {

/// Ten rounds of Philox with four 32-bit words.
constexpr std::array<uint32_t, 4> philox(std::array<uint32_t, 4> counter,
                                         std::array<uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    auto a = uint64_t{0xD2511F53u} * counter[0];
    auto b = uint64_t{0xCD9E8D57u} * counter[2];
    counter = {static_cast<uint32_t>(b >> 32) ^ counter[1] ^ key[0], static_cast<uint32_t>(b),
               static_cast<uint32_t>(a >> 32) ^ counter[3] ^ key[1], static_cast<uint32_t>(a)};
    key[0] += 0x9E3779B9u;
    key[1] += 0xBB67AE85u;
  }
  return counter;
}

/// Uniform in [0, 1) with 53 bits: the key is the seed, the counter is (draw, choice, 0, 0).
constexpr double philox_uniform(uint64_t seed, uint32_t choice, uint32_t draw) {
  auto word = philox({draw, choice, 0, 0},
                     {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)});
  auto bits = uint64_t{word[0]} << 32 | word[1];
  return static_cast<double>(bits >> 11) * 0x1p-53;
}

} // namespace lamella::gpu
