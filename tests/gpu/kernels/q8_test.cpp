// K and V in eight bits: what is stored of them, and what attention makes of that.
#include "gpu/kernels/q8.hpp"
#include "tests/gpu/kernels/stored_head.hpp"

#include <algorithm>

using namespace lamella::gpu;
using namespace lamella::gpu::test;

namespace {

std::vector<std::byte> stored(const operators& set, const std::vector<float>& x) {
  return stored_head(set, half_type::q8, x);
}

float scale_of(const std::vector<std::byte>& head) {
  return q8_scale_of(head.data(), head.size() - 4);
}

} // namespace

TEST_CASE("a head in q8 is its bytes, zeros and a scale, at multiples of 16 bytes") {
  CHECK(head_bytes_of(half_type::q8, 64) == 80);
  CHECK(head_bytes_of(half_type::q8, 128) == 144);
  CHECK(head_bytes_of(half_type::q8, 12) == 16);
  CHECK(head_bytes_of(half_type::q8, 13) == 32);
  for (uint32_t dim = 1; dim <= 300; ++dim) {
    CHECK(head_bytes_of(half_type::q8, dim) % 16 == 0);
    CHECK(q8_scale_at(dim) >= dim);
  }
  for (const auto* set : sets(true)) {
    CAPTURE(set->name);
    randomness random{31};
    for (uint32_t dim : {1u, 7u, 16u, 40u, 64u, 128u}) {
      CAPTURE(dim);
      const auto x = random.normals(dim);
      const auto head = stored(*set, x);
      float highest = 0;
      for (auto v : x) highest = std::max(highest, std::fabs(v));
      CHECK(scale_of(head) == highest / 127);
      for (uint32_t j = 0; j < dim; ++j) {
        const auto q = static_cast<int8_t>(head[j]);
        CHECK(std::abs(q) <= 127);
        // Half a step, and what the division and the matmuls round.
        CHECK(std::fabs(static_cast<float>(q) * scale_of(head) - x[j]) <= 0.50002f * highest / 127);
      }
      for (auto j = dim; j < q8_scale_at(dim); ++j) CHECK(head[j] == std::byte{0});
    }
  }
}

TEST_CASE("ties in q8 go to even, and the ends of the range are kept") {
  std::vector<float> x(16, 0.0f);
  x[0] = 127, x[1] = -127, x[2] = 0.5f, x[3] = 1.5f, x[4] = -2.5f, x[5] = -0.0f;
  for (const auto* set : sets(true)) {
    const auto head = stored(*set, x);
    const int wanted[] = {127, -127, 0, 2, -2, 0};
    for (size_t j = 0; j < 6; ++j) CHECK(static_cast<int8_t>(head[j]) == wanted[j]);
  }
}

TEST_CASE("a head of nothing is zero, a tiny one too, and one that is not finite stays so") {
  constexpr float infinite = std::numeric_limits<float>::infinity();
  for (const auto* set : sets(true)) {
    CAPTURE(set->name);
    for (float most : {0.0f, 1e-31f, 1e-40f}) {
      std::vector<float> x(20, 0.0f);
      x[7] = most;
      const auto head = stored(*set, x);
      CHECK(head == std::vector<std::byte>(head.size()));
    }
    for (float most : {1e-29f, 3e38f}) {
      std::vector<float> x(20, 0.0f);
      x[19] = -most;
      CHECK(static_cast<int8_t>(stored(*set, x)[19]) == -127);
    }
    for (float broken : {infinite, -infinite, std::numeric_limits<float>::quiet_NaN()}) {
      std::vector<float> x(20, 1.0f);
      x[19] = broken;
      const auto head = stored(*set, x);
      CHECK(std::isnan(scale_of(head)));
      CHECK(head == stored(reference_operators(), x)); // the same NaN everywhere
    }
  }
}
