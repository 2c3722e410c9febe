// The sources of the matrix matmuls, run lane by lane on the CPU: every tile, on either kind of
// matrix instruction, computes the same bytes and the right ones.
#include "tests/emulated/product_intrinsics.hpp"

#include "gpu/cuda/gemm/mma_gemm.cu"

#include "gpu/kernels/half.hpp"

#include <doctest/doctest.h>

#include <random>

using namespace lamella::gpu;
using namespace lamella::gpu::cuda;

namespace {

struct problem {
  dense_type type;
  uint32_t rows, outputs, inputs;
  std::vector<uint16_t> w, x;

  problem(dense_type t, uint32_t m, uint32_t n, uint32_t k, uint64_t seed)
      : type{t}, rows{m}, outputs{n}, inputs{k}, w(size_t{n} * k), x(size_t{m} * k) {
    std::mt19937_64 engine{seed};
    std::normal_distribution<float> normal;
    for (auto* matrix : {&w, &x})
      for (auto& element : *matrix) {
        const auto value = normal(engine);
        element = t == dense_type::f16
                      ? to_half(value)
                      : static_cast<uint16_t>(std::bit_cast<uint32_t>(value) >> 16);
      }
  }

  double element(const std::vector<uint16_t>& matrix, size_t i) const {
    return type == dense_type::f16 ? from_half(matrix[i]) : from_bf16(matrix[i]);
  }

  /// Rows of three more floats than needed, which must stay NaN.
  std::vector<float> run(uint32_t variant, uint32_t splits, split_tickets tickets = {}) const {
    const auto stride = outputs + 3;
    std::vector<float> out(size_t{rows} * stride, NAN), parts(size_t{rows} * outputs * splits, NAN);
    const product p{type, rows, outputs, inputs, w.data(), x.data(), out.data(), stride};
    REQUIRE(launch_mma(variant, p, splits, parts.data(), tickets, nullptr) == cudaSuccess);
    return out;
  }
};

void check_all_variants(const problem& p, uint32_t splits) {
  const auto first = p.run(0, splits);
  const auto stride = p.outputs + 3;
  for (uint32_t m = 0; m < p.rows; ++m)
    for (uint32_t n = 0; n < stride; ++n) {
      const auto value = first[size_t{m} * stride + n];
      if (n >= p.outputs) {
        if (!std::isnan(value)) FAIL("wrote behind a row");
        continue;
      }
      double sum = 0, size = 0;
      for (uint32_t k = 0; k < p.inputs; ++k) {
        const auto one =
            p.element(p.x, size_t{m} * p.inputs + k) * p.element(p.w, size_t{n} * p.inputs + k);
        sum += one;
        size += std::fabs(one);
      }
      // One rounding per 16 inputs, each at most 2^-24 of what is summed so far.
      if (!(std::fabs(value - sum) <= size * p.inputs / 16 * 0x1p-24))
        FAIL("row " << m << " output " << n << ": " << value << " not " << sum);
    }
  std::vector<uint32_t> tickets(64);
  const split_tickets joined{tickets.data(), static_cast<uint32_t>(tickets.size())};
  for (uint32_t variant = 0; variant < mma_variants(); ++variant)
    for (const auto& with : {split_tickets{}, joined}) {
      CAPTURE(mma_variant_name(variant));
      CAPTURE(with.count);
      const auto out = p.run(variant, splits, with);
      size_t different = 0;
      for (size_t i = 0; i < out.size(); ++i)
        different += std::memcmp(&out[i], &first[i], sizeof(float)) != 0;
      CHECK(different == 0);
      CHECK(tickets == std::vector<uint32_t>(64));
    }
}

} // namespace

TEST_CASE("every tile of a product computes the same bytes, whatever does not fill it") {
  const auto seed = uint64_t{std::random_device{}()};
  MESSAGE("seed " << seed);
  // Neither rows, outputs nor inputs fill a tile; more tiles of inputs than any kernel has stages.
  check_all_variants({dense_type::f16, 19, 70, 840, seed}, 1);
  check_all_variants({dense_type::bf16, 3, 65, 72, seed}, 1);
}

TEST_CASE("where nothing was measured, tiles are taken that a block of the device has room for") {
  constexpr int small = 101'376, large = 232'448; // of sm_86 and sm_89, and of sm_90
  for (uint32_t rows : {1u, 16u, 17u, 64u, 65u, 257u, 1024u})
    for (uint32_t outputs : {64u, 8192u, 28'672u}) {
      CAPTURE(rows);
      CAPTURE(outputs);
      const std::string_view wide = mma_variant_name(default_mma_variant(rows, outputs, large)),
                             here = mma_variant_name(default_mma_variant(rows, outputs, small));
      if (wide == "16x64")
        CHECK(here == "32x64");
      else if (wide == "128x256")
        CHECK(here == "128x128");
      else
        CHECK(here == wide);
    }
}

TEST_CASE("splits of a product are summed in ascending order, an empty one included") {
  const auto seed = uint64_t{std::random_device{}()};
  MESSAGE("seed " << seed);
  check_all_variants({dense_type::f16, 5, 40, 296, seed}, 2);
  check_all_variants({dense_type::bf16, 2, 16, 264, seed}, 4); // 128, 128, 8, 0
}

TEST_CASE("a row of a product has the same bytes alone") {
  const auto seed = uint64_t{std::random_device{}()};
  MESSAGE("seed " << seed);
  const problem all{dense_type::f16, 130, 33, 136, seed};
  for (auto variant : {0u, 4u, mma_sync_variants() + 3}) {
    const auto whole = all.run(variant, 1);
    for (uint32_t m : {0u, 17u, 129u}) {
      auto one = all;
      one.rows = 1;
      one.x.assign(all.x.begin() + m * all.inputs, all.x.begin() + (m + 1) * all.inputs);
      const auto alone = one.run(variant, 1);
      CHECK(std::memcmp(alone.data(), whole.data() + m * 36, 33 * sizeof(float)) == 0);
    }
  }
}
