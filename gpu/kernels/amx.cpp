// The avx512 set with products on tiles. Compiled with AVX-512 flags: everything this file includes
// of ours has internal linkage, so that the linker cannot keep an AVX-512 copy of a function for
// the whole program. The tile instructions are in asm statements, which no other file has.
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
#include "gpu/kernels/tiles/matmul.hpp"

namespace lamella::gpu {

const operators* amx_operators() { return operators_with_tiles<avx512_operators>("amx"); }

bool amx_tiles_are_exact() {
  constexpr int elements = 32;
  alignas(64) int8_t rows[16 * elements], weights[elements * 16];
  alignas(64) int32_t sums[256];
  for (int i = 0; i < 16 * elements; ++i) {
    rows[i] = static_cast<int8_t>(i * 37 + i / 7);
    weights[i] = static_cast<int8_t>(i * 101 - i / 5);
  }
  {
    const tile_unit::session<elements> session;
    tile_unit::multiply<elements>(rows, elements, weights, sums);
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

} // namespace lamella::gpu

#else

#include "gpu/kernels/sets.hpp"

namespace lamella::gpu {

const operators* amx_operators() { return nullptr; }

bool amx_tiles_are_exact() { return false; }

} // namespace lamella::gpu

#endif
