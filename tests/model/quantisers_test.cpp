// The helpers that write tiny models are right themselves, and agree with what reads their blocks.
#include "model/quantised_block.hpp"
#include "tests/quantisers.hpp"
#include "tests/random.hpp"

#include <doctest/doctest.h>
#include <vector>

using namespace lamella;
using model::tensor_type;

namespace {

/// Unpacks one block by the formula of model/quantised_block.hpp.
std::vector<float> unpack(tensor_type type, const std::string& bytes) {
  std::vector<float> values(model::block_elements(type));
  const auto* b = reinterpret_cast<const uint8_t*>(bytes.data());
  model::with_quantised(type, [&](auto known) {
    using block = model::quantised_block<decltype(known)::value>;
    for (uint32_t i = 0; i < values.size(); ++i) {
      const auto s = i / block::scale_elements;
      values[i] = tests::from_half(block::d(b)) * static_cast<float>(block::scale(b, s))
                  * static_cast<float>(block::level(block::code(b, i)));
      if constexpr (block::has_minimum)
        values[i] += tests::from_half(block::m(b)) * static_cast<float>(block::minimum(b, s));
    }
  });
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
    std::vector<float> values(256);
    float low = 0, high = 0;
    for (float& value : values) {
      value = round == 0 ? 0.f : random.normal() + static_cast<float>(round % 3);
      low = std::min(low, value);
      high = std::max(high, value);
    }
    const float most = std::max(high, -low), range = high - low;
    // Half a quantum, and the rounding of the half-precision scale over the whole range. Where the
    // wider side of the range has the lowest code, the other ends a quantum before it. Scales and
    // minimums of super-blocks are rounded to half a step of the largest.
    const auto bound = [&](tensor_type type) {
      const float halves = (range + most) * 0x1p-10f;
      switch (type) {
      case tensor_type::q8_0:
        return most / 127 * 0.5f + halves;
      case tensor_type::q4_0:
        return most / 8 + halves;
      case tensor_type::q5_0:
        return most / 16 + halves;
      case tensor_type::q4_1:
        return range / 15 * 0.5f + halves;
      case tensor_type::q5_1:
        return range / 31 * 0.5f + halves;
      case tensor_type::q2_k:
        return range / 3 * 0.5f + (range + most) / 15 * 0.5f + halves;
      case tensor_type::q3_k:
        return most / 4 + most / 31 * 0.5f + halves;
      case tensor_type::q4_k:
        return range / 15 * 0.5f + (range + most) / 63 * 0.5f + halves;
      case tensor_type::q5_k:
        return range / 31 * 0.5f + (range + most) / 63 * 0.5f + halves;
      case tensor_type::q6_k:
        return most / 32 + most / 127 * 0.5f + halves;
      case tensor_type::iq4_nl: // levels lie up to 24 apart, and the upper side ends at 113
        return most / 127 * 14 + halves;
      default: // iq4_xs
        return most / 127 * 14 + most / 31 * 0.5f + halves;
      }
    };
    for (const auto& known : model::tensor_types) {
      if (known.block_elements == 1) continue;
      CAPTURE(known.name);
      const std::string packed = tests::pack(known.type, values);
      REQUIRE(packed.size() == model::row_bytes(known.type, values.size()));
      for (size_t at = 0; at < values.size(); at += known.block_elements) {
        const auto block = packed.substr(at / known.block_elements * known.block_bytes);
        const auto read = unpack(known.type, block);
        for (size_t i = 0; i < read.size(); ++i)
          REQUIRE(std::abs(read[i] - values[at + i]) <= bound(known.type));
      }
    }
  }
}

TEST_CASE("every bit of a block counts once") {
  for (const auto& known : model::tensor_types)
    model::with_quantised(known.type, [&](auto of) {
      CAPTURE(known.name);
      using block = model::quantised_block<decltype(of)::value>;
      // What one bit changes: a half, the scale or the minimum of some elements, or one code.
      const auto all = [&](const std::string& bytes) {
        const auto* b = reinterpret_cast<const uint8_t*>(bytes.data());
        std::vector<int64_t> numbers{block::d(b)};
        if constexpr (block::has_minimum) numbers.push_back(block::m(b));
        for (uint32_t s = 0; s < known.block_elements / block::scale_elements; ++s) {
          numbers.push_back(block::scale(b, s));
          if constexpr (block::has_minimum) numbers.push_back(block::minimum(b, s));
        }
        for (uint32_t i = 0; i < known.block_elements; ++i) numbers.push_back(block::code(b, i));
        return numbers;
      };
      const auto zeros = all(std::string(known.block_bytes, '\0'));
      for (size_t bit = 0; bit < size_t{8} * known.block_bytes; ++bit) {
        std::string bytes(known.block_bytes, '\0');
        bytes[bit / 8] = static_cast<char>(1 << bit % 8);
        const auto changed = all(bytes);
        size_t different = 0;
        for (size_t i = 0; i < zeros.size(); ++i) different += changed[i] != zeros[i];
        REQUIRE(different == 1);
      }
    });
}
