/// The tile operation of gpu/kernels/tiles/unit_amx.hpp in plain C++: the same members, the same
/// arithmetic.
#pragma once

#include <cstddef>
#include <cstdint>

namespace lamella::gpu {
namespace {

struct tile_unit {
  template <int elements> struct session {
    session() {} // there is nothing to configure
  };

  template <int elements>
  static void multiply(const int8_t* rows, size_t stride, const int8_t* weights, int32_t* sums) {
    for (int m = 0; m < 16; ++m, rows += stride, sums += 16) {
      for (int n = 0; n < 16; ++n) sums[n] = 0;
      for (int k = 0; k < elements; ++k)
        for (int n = 0; n < 16; ++n)
          sums[n] += int32_t{rows[k]} * weights[k / 4 * 64 + n * 4 + k % 4];
    }
  }
};

} // namespace
} // namespace lamella::gpu
