// The helpers that write tiny models are right themselves.
#include "tests/quantisers.hpp"
#include "tests/random.hpp"

#include <doctest/doctest.h>
#include <vector>

using namespace lamella;
using model::tensor_type;

namespace {

/// Unpacks one block of 32 by the formulas of model/tensor.hpp.
std::vector<float> unpack(tensor_type type, const std::string& bytes) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(bytes[i]); };
  const auto half = [&](size_t i) {
    return tests::from_half(static_cast<uint16_t>(byte(i) | byte(i + 1) << 8));
  };
  std::vector<float> values(32);
  for (size_t i = 0; i < 32; ++i) {
    const auto nibble = [&](size_t begin) {
      return static_cast<float>(i < 16 ? byte(begin + i) & 15 : byte(begin + i - 16) >> 4);
    };
    if (type == tensor_type::q8_0) values[i] = half(0) * static_cast<int8_t>(byte(2 + i));
    if (type == tensor_type::q4_0) values[i] = half(0) * (nibble(2) - 8);
    if (type == tensor_type::q4_1) values[i] = half(0) * nibble(4) + half(2);
  }
  return values;
}

} // namespace

TEST_CASE("every finite half survives the way to float and back") {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto half = static_cast<uint16_t>(bits);
    if ((half & 0x7C00) == 0x7C00) continue;
    if (tests::to_half(tests::from_half(half)) != half) FAIL("differs at " << bits);
  }
  CHECK(tests::to_half(65519.f) == 0x7BFF);
  CHECK(tests::to_half(65520.f) == 0x7C00);
  CHECK(tests::to_half(0x1p-25f) == 0);   // a tie goes to the even neighbour
  CHECK(tests::to_half(0x1.8p-24f) == 2); // likewise
  CHECK(tests::to_half(1.f + 0x1p-11f) == 0x3C00);
  CHECK(tests::to_half(1.f + 3 * 0x1p-11f) == 0x3C02);
}

TEST_CASE("quantised blocks have their size and stay within half a quantum of the values") {
  const uint64_t seed = 13;
  CAPTURE(seed);
  tests::splitmix random(seed);
  for (int round = 0; round < 500; ++round) {
    std::vector<float> values(32);
    float low = 0, high = 0;
    for (float& value : values) {
      value = round == 0 ? 0.f : random.normal() + static_cast<float>(round % 3);
      low = std::min(low, value);
      high = std::max(high, value);
    }
    const float most = std::max(high, -low);
    // Half a quantum, and the rounding of the half-precision scale over the whole range. In q4_0
    // the side of the range that is not the wider one ends at 7 quanta, so a whole quantum may be
    // missed.
    const auto bound = [&](tensor_type type) {
      if (type == tensor_type::q8_0) return most / 127 * 0.5f + most * 0x1p-10f;
      if (type == tensor_type::q4_0) return most / 8 + most * 0x1p-10f;
      return (high - low) / 15 * 0.5f + (high - low + most) * 0x1p-10f;
    };
    for (const auto type : {tensor_type::q8_0, tensor_type::q4_0, tensor_type::q4_1}) {
      const std::string packed = tests::pack(type, values);
      REQUIRE(packed.size() == model::block_bytes(type));
      const auto read = unpack(type, packed);
      for (size_t i = 0; i < 32; ++i) {
        CAPTURE(to_string(type));
        CHECK(std::abs(read[i] - values[i]) <= bound(type));
      }
    }
  }
}
