// The avx512 set with products and attention on tiles. Compiled with AVX-512 flags: everything this
// file includes of ours has internal linkage, so that the linker cannot keep an AVX-512 copy of a
// function for the whole program. The tile instructions are in asm statements, which no other file
// has.
#if defined(__AVX512VNNI__)

#if defined(__GNUC__) && !defined(__clang__)
// GCC 12's own headers leave "undefined" vectors uninitialised, and it warns where they are
// inlined.
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

#include "gpu/kernels/lanes_avx512.hpp"
#include "gpu/kernels/tiles/unit_amx.hpp"

#include "gpu/kernels/sets.hpp"
#include "gpu/kernels/tiles/table.hpp"

#include <bit>

namespace lamella::gpu {

namespace {

bool bytes_are_exact() {
  constexpr int elements = 32;
  alignas(64) int8_t rows[16 * elements], weights[elements * 16];
  alignas(64) int32_t sums[256];
  for (int i = 0; i < 16 * elements; ++i) {
    rows[i] = static_cast<int8_t>(i * 37 + i / 7);
    weights[i] = static_cast<int8_t>(i * 101 - i / 5);
  }
  {
    const tile_unit::session<elements> session;
    session.multiply<1>(rows, elements, weights);
    session.store<1>(sums);
  }
  for (int m = 0; m < 16; ++m)
    for (int n = 0; n < 16; ++n) {
      int32_t sum = 0;
      for (int k = 0; k < elements; ++k)
        sum += rows[m * elements + k] * weights[(k / 4 * 16 + n) * 4 + k % 4];
      if (sums[m * 16 + n] != sum) return false;
    }
  return true;
}

/// Of small integers, whose sums fp32 has in any order.
bool halves_are_exact() {
  constexpr auto number = [](int i) { return i * 29 % 31 - 15; };
  const auto half = [](int x) { return std::bit_cast<uint32_t>(static_cast<float>(x)) >> 16; };
  alignas(64) uint32_t left[256], right[256];
  alignas(64) float sums[256];
  for (int i = 0; i < 256; ++i) {
    left[i] = half(number(2 * i)) | half(number(2 * i + 1)) << 16;
    right[i] = half(number(3 * i)) | half(number(5 * i)) << 16;
  }
  {
    const tile_unit::halves unit{16};
    unit.zero<3>();
    unit.load<4>(left, 64);
    unit.load<7>(right, 64);
    unit.multiply<3, 4, 7>();
    unit.multiply<3, 4, 7>();
    unit.store<3>(sums, 64);
  }
  for (int m = 0; m < 16; ++m)
    for (int n = 0; n < 16; ++n) {
      int sum = 0;
      for (int k = 0; k < 16; ++k) {
        const auto a = 2 * (m * 16 + k), b = k * 16 + n;
        sum += number(a) * number(3 * b) + number(a + 1) * number(5 * b);
      }
      if (sums[m * 16 + n] != static_cast<float>(2 * sum)) return false;
    }
  return true;
}

} // namespace

const operators* amx_operators() { return operators_with_tiles<avx512_operators>("amx"); }

bool amx_tiles_are_exact() { return bytes_are_exact() && halves_are_exact(); }

} // namespace lamella::gpu

#else

#include "gpu/kernels/sets.hpp"

namespace lamella::gpu {

const operators* amx_operators() { return nullptr; }

bool amx_tiles_are_exact() { return false; }

} // namespace lamella::gpu

#endif
