// K and V in four bits: what is stored of them.
#include "gpu/kernels/q4.hpp"
#include "tests/gpu/kernels/stored_head.hpp"

#include <algorithm>

using namespace lamella::gpu;
using namespace lamella::gpu::test;

namespace {

std::vector<std::byte> stored(const operators& set, const std::vector<float>& x) {
  return stored_head(set, half_type::q4, x);
}

q4_factors factors_of(const std::vector<std::byte>& head, uint32_t dim, uint32_t element) {
  return q4_factors_of(head.data() + q4_scales_at(dim), element / q4_group);
}

/// Rotated.
float value_of(const std::vector<std::byte>& head, uint32_t dim, uint32_t element) {
  const auto [scale, least] = factors_of(head, dim, element);
  return scale * q4_code(head.data(), element) + least;
}

} // namespace

TEST_CASE("a head in q4 is its codes, factors for each 32 and zeros, at multiples of 16 bytes") {
  CHECK(head_bytes_of(half_type::q4, 64) == 48);
  CHECK(head_bytes_of(half_type::q4, 128) == 80);
  CHECK(head_bytes_of(half_type::q4, 1) == 32);
  for (uint32_t dim = 1; dim <= 300; ++dim) {
    CHECK(head_bytes_of(half_type::q4, dim) % 16 == 0);
    CHECK(head_bytes_of(half_type::q4, dim)
          >= q4_scales_at(dim) + size_t{(dim + q4_group - 1) / q4_group} * 4);
  }
  for (const auto* set : sets(true)) {
    CAPTURE(set->name);
    randomness random{32};
    for (uint32_t dim : {1u, 7u, 16u, 40u, 64u, 128u, 129u}) {
      CAPTURE(dim);
      auto x = random.normals(dim);
      const auto head = stored(*set, x);
      CHECK(head == stored(reference_operators(), x)); // the same bytes everywhere
      q4_rotate(x.data(), dim, q4_block(dim));
      for (uint32_t j = 0; j < dim; ++j) {
        const auto first = j / q4_group * q4_group, end = std::min(dim, first + q4_group);
        const auto [low, high] = std::minmax_element(x.begin() + first, x.begin() + end);
        const auto range = *high - *low;
        // Half a step, and what is cut off by the factors in bf16: 1/512 of each.
        const auto off = range / 30 + (std::fabs(*low) + range) / 256;
        CHECK(std::fabs(value_of(head, dim, j) - x[j]) <= off);
        CHECK(factors_of(head, dim, j).scale <= range / 15 * (1 + 1.0f / 128) + 1e-30f);
      }
      const auto end = q4_scales_at(dim) + size_t{(dim + q4_group - 1) / q4_group} * 4;
      for (auto j = end; j < head.size(); ++j) CHECK(head[j] == std::byte{0});
    }
  }
}

TEST_CASE("the rotation of q4 keeps lengths, is its own inverse and spreads what is far out") {
  randomness random{33};
  for (uint32_t dim : {1u, 7u, 40u, 64u, 96u, 128u, 256u}) {
    CAPTURE(dim);
    const auto block = q4_block(dim);
    CHECK(dim % block == 0);
    const auto x = random.normals(dim);
    auto there = x;
    q4_rotate(there.data(), dim, block);
    double before = 0, after = 0;
    for (uint32_t j = 0; j < dim; ++j)
      before += double{x[j]} * x[j], after += double{there[j]} * there[j];
    CHECK(after == doctest::Approx(before).epsilon(1e-5));
    q4_rotate(there.data(), dim, block);
    for (uint32_t j = 0; j < dim; ++j) CHECK(std::fabs(there[j] - x[j]) < 1e-5);
  }
  std::vector<float> one(64, 0.0f);
  one[5] = 8;
  q4_rotate(one.data(), 64, q4_block(64));
  for (auto v : one) CHECK(std::fabs(std::fabs(v) - 1) < 1e-5);
}

TEST_CASE("ties in q4 go to even, and the ends of a group's range are kept") {
  std::vector<float> x(65, 0.0f); // of an odd length: nothing is rotated
  x[0] = 15, x[1] = 0, x[2] = 0.5f, x[3] = 1.5f, x[20] = 14.5f, x[21] = 13.5f;
  x[32] = -30; // another group, with a scale of its own
  for (const auto* set : sets(true)) {
    const auto head = stored(*set, x);
    const std::pair<uint32_t, float> wanted[]{{0, 15.0f},  {1, 0.0f},   {2, 0.0f},    {3, 2.0f},
                                              {20, 14.0f}, {21, 14.0f}, {32, -30.0f}, {33, 0.0f}};
    for (const auto& [element, value] : wanted) {
      CAPTURE(element);
      CHECK(value_of(head, 65, element) == value);
    }
  }
}

TEST_CASE("a group of one value is that, a tiny range too, and what is not finite stays so") {
  constexpr float infinite = std::numeric_limits<float>::infinity();
  for (const auto* set : sets(true)) {
    CAPTURE(set->name);
    for (float all : {0.0f, 1.5f, -8e37f}) {
      const auto head = stored(*set, std::vector<float>(21, all)); // nothing is rotated
      const auto rounded = from_bf16(to_bf16(all));
      for (uint32_t j = 0; j < 21; ++j) CHECK(value_of(head, 21, j) == rounded);
    }
    std::vector<float> tiny(21, 0.0f);
    tiny[7] = 1e-31f;
    CHECK(value_of(stored(*set, tiny), 21, 7) == 0.0f);
    std::vector<float> wide(21, 8e37f);
    wide[3] = -8e37f;
    const auto head = stored(*set, wide);
    CHECK(std::fabs(value_of(head, 21, 3) / -8e37f - 1) < 0.01f);
    CHECK(std::fabs(value_of(head, 21, 4) / 8e37f - 1) < 0.02f);
    wide[3] = -3e38f;
    CHECK(std::isnan(value_of(stored(*set, wide), 21, 20)));
    for (float broken : {infinite, -infinite, std::numeric_limits<float>::quiet_NaN()}) {
      std::vector<float> x(64, 1.0f);
      x[63] = broken;
      const auto bad = stored(*set, x);
      for (uint32_t j = 0; j < 64; ++j) CHECK(std::isnan(value_of(bad, 64, j)));
      CHECK(bad == stored(reference_operators(), x)); // the same NaN everywhere
    }
  }
}
