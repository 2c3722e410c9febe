// The source of the wgmma kernels for the emulated device; products_test.cpp runs them.
#include "tests/emulated/product_intrinsics.hpp"

#include "gpu/cuda/gemm/wgmma_gemm.cu"

#include <doctest/doctest.h>

using namespace lamella::gpu::cuda;

TEST_CASE("descriptors find a tile's elements where the copies put them") {
  using tile = wgmma_tile<64, 64, 4>;
  size_t wrong = 0;
  for (uint32_t base : {0u, 1024u, 4096u + tile::BN * tile::row_bytes})
    for (int row = 0; row < 64; ++row)
      for (int k = 0; k < tile::BK; ++k) {
        const auto put = base + mma::swizzled<tile>(row, k / 8) + static_cast<uint32_t>(k % 8 * 2);
        const auto step = wgmma::descriptor(base + static_cast<uint32_t>(k / 16 * 32));
        wrong +=
            wgmma::swizzled_address(step, static_cast<unsigned>(row), static_cast<unsigned>(k % 16))
            != put;
      }
  CHECK(wrong == 0);
}
