#include "tests/gpu/kernels/kernel_support.hpp"

using namespace lamella;
using namespace lamella::gpu;
using namespace lamella::gpu::test;
using lamella::model::tensor_type;

namespace {

using lamella::model::tensor_types;

bool quantised(tensor_type type) { return lamella::model::block_elements(type) != 1; }

/// `inputs`, or the next number of them that is whole blocks.
uint32_t whole_blocks(tensor_type type, uint32_t inputs) {
  const auto elements = lamella::model::block_elements(type);
  return (inputs + elements - 1) / elements * elements;
}

/// x * weight^T with rows `stride` apart; places that must stay untouched hold NaN.
std::vector<float> multiply(const operators& set, machine& on, const packed_matrix& weight,
                            std::span<const float> x, uint32_t rows, uint32_t stride) {
  auto out = poisoned(size_t{rows} * stride);
  matmul_part part{weight, out.data(), stride};
  set.matmul({x.data(), rows, {&part, 1}}, on.context());
  return out;
}

double norm(std::span<const float> x) {
  double sum = 0;
  for (double v : x) sum += v * v;
  return std::sqrt(sum);
}

/// Lengths of the rows of a weight matrix.
std::vector<double> row_norms(weights& w, machine& on) {
  std::vector<uint32_t> all(w.outputs);
  for (uint32_t n = 0; n < w.outputs; ++n) all[n] = n;
  std::vector<float> rows(size_t{w.outputs} * w.inputs);
  reference_operators().embed(
      {w.packed(reference_operators(), on.workers), all, {}, nullptr, rows.data()}, on.context());
  std::vector<double> result;
  for (uint32_t n = 0; n < w.outputs; ++n)
    result.push_back(norm({rows.data() + size_t{n} * w.inputs, w.inputs}));
  return result;
}

} // namespace

TEST_CASE("products equal the reference within the error of the activations' rounding") {
  machine one{1}, three{3};
  for (const auto* set : sets(false)) {
    uint64_t seed = 1;
    for (auto [type, name, number, elements, bytes] : tensor_types)
      for (uint32_t rows : {1u, 2u, 3u, 7u, 8u, 17u, 54u, 70u})
        for (uint32_t outputs : {1u, 15u, 16u, 17u, 31u, 48u, 81u})
          for (uint32_t some : {32u, 96u, 576u}) {
            if (some == 96 && (rows > 17 || elements == 256)) continue;
            const auto inputs = whole_blocks(type, some);
            CAPTURE(set->name);
            CAPTURE(to_string(type));
            CAPTURE(rows);
            CAPTURE(outputs);
            CAPTURE(inputs);
            CAPTURE(seed);
            randomness random{++seed};
            weights w{type, outputs, inputs, random};
            auto x = random.normals(size_t{rows} * inputs);
            auto stride = outputs + seed % 3;
            auto actual = multiply(*set, three, w.packed(*set, three.workers), x, rows, stride);
            auto expected = multiply(reference_operators(), one,
                                     w.packed(reference_operators(), one.workers), x, rows, stride);
            auto norms = row_norms(w, one);
            std::vector<float> a, b;
            // int8 activations keep 1 in 254 of each block's largest; fp32 sums 2^-24 per step.
            auto tolerance = quantised(type) ? 1e-2 : 1e-5;
            for (uint32_t m = 0; m < rows; ++m) {
              auto size = norm({x.data() + size_t{m} * inputs, inputs});
              for (uint32_t n = 0; n < stride; ++n) {
                auto i = size_t{m} * stride + n;
                if (n >= outputs) {
                  REQUIRE(std::isnan(actual[i])); // not ours to write
                  continue;
                }
                REQUIRE(std::fabs(actual[i] - expected[i]) <= tolerance * size * norms[n]);
                a.push_back(actual[i]);
                b.push_back(expected[i]);
              }
            }
            // Of few outputs, chance may make all of them small beside their errors.
            if (a.size() >= 100) REQUIRE(relative_rms(a, b) < tolerance);
          }
  }
}

TEST_CASE("a row's product has the same bytes alone, among any rows and on any team") {
  machine one{1}, two{2}, five{5};
  for (const auto* set : sets(true))
    for (const auto& known : tensor_types) {
      const auto type = known.type;
      CAPTURE(set->name);
      CAPTURE(to_string(type));
      randomness random{7};
      constexpr uint32_t rows = 70, outputs = 177;
      const auto inputs = whole_blocks(type, 288);
      weights w{type, outputs, inputs, random};
      auto packed = w.packed(*set, one.workers);
      auto x = random.normals(rows * inputs);
      auto all = multiply(*set, one, packed, x, rows, outputs);
      for (auto* on : {&two, &five})
        REQUIRE(same_bytes<float>(multiply(*set, *on, packed, x, rows, outputs), all));
      std::span<const float> inputs_of{x}, outputs_of{all};
      for (uint32_t count = 1; count <= rows; count += count < 20 ? 1 : 7)
        for (uint32_t first = 0; first + count <= rows; first += 13) {
          CAPTURE(first);
          CAPTURE(count);
          auto some = multiply(*set, two, packed, inputs_of.subspan(first * inputs, count * inputs),
                               count, outputs);
          REQUIRE(same_bytes<float>(some, outputs_of.subspan(first * outputs, count * outputs)));
        }
    }
}

TEST_CASE("rows beyond a cache block keep their bytes too") {
  machine two{2};
  for (const auto* set : sets(false))
    for (auto type : {tensor_type::q4_1, tensor_type::q6_k}) {
      CAPTURE(set->name);
      CAPTURE(to_string(type));
      randomness random{11};
      constexpr uint32_t rows = 391, outputs = 33;
      const auto inputs = whole_blocks(type, 64);
      weights w{type, outputs, inputs, random};
      auto packed = w.packed(*set, two.workers);
      auto x = random.normals(rows * inputs);
      auto all = multiply(*set, two, packed, x, rows, outputs);
      std::span<const float> inputs_of{x}, outputs_of{all};
      for (uint32_t m : {0u, 119u, 120u, 121u, 239u, 240u, 389u, 390u})
        REQUIRE(same_bytes<float>(
            multiply(*set, two, packed, inputs_of.subspan(m * inputs, inputs), 1, outputs),
            outputs_of.subspan(m * outputs, outputs)));
    }
}

TEST_CASE("several products of one input equal the products one by one") {
  machine two{2};
  for (const auto* set : sets(true))
    for (uint32_t rows : {1u, 5u, 33u}) {
      CAPTURE(set->name);
      CAPTURE(rows);
      randomness random{13};
      constexpr uint32_t inputs = 256;
      // Q6_K needs sums of half blocks, which the others must not miss or mistake.
      weights gate{tensor_type::q4_1, 150, inputs, random},
          up{tensor_type::q8_0, 31, inputs, random}, plain{tensor_type::f32, 17, inputs, random},
          keys{tensor_type::q4_k, 33, inputs, random},
          values{tensor_type::q6_k, 18, inputs, random};
      auto x = random.normals(rows * inputs);
      std::vector<matmul_part> parts;
      std::vector<std::vector<float>> outs;
      for (auto* w : {&gate, &up, &plain, &keys, &values}) {
        outs.push_back(poisoned(rows * w->outputs));
        parts.push_back({w->packed(*set, two.workers), outs.back().data(), w->outputs});
      }
      set->matmul({x.data(), rows, parts}, two.context());
      for (size_t i = 0; i < parts.size(); ++i)
        REQUIRE(same_bytes<float>(
            outs[i], multiply(*set, two, parts[i].weight, x, rows, parts[i].weight.outputs)));
    }
}

TEST_CASE("integer sums are exact at the extremes of every type") {
  // Largest magnitudes everywhere: sums of matmuls would overflow 16 bits if they were kept there.
  machine one{1};
  for (const auto* set : sets(false))
    for (auto [type, name, number, elements, bytes] : tensor_types) {
      if (elements == 1) continue;
      for (int fill : {0x00, 0x7f, 0x80, 0x81, 0xff})
        for (float sign : {1.0f, -1.0f}) {
          CAPTURE(set->name);
          CAPTURE(name);
          CAPTURE(fill);
          randomness random{3};
          constexpr uint32_t outputs = 16;
          const auto inputs = whole_blocks(type, 64);
          weights w{type, outputs, inputs, random};
          const auto [d, m, middle] = half_places_of(type);
          for (size_t at = 0; at < w.file.size(); ++at) {
            const auto in_block = at % bytes, of_m = m.value_or(d);
            if (in_block != d && in_block != d + 1 && in_block != of_m && in_block != of_m + 1)
              w.file[at] = static_cast<std::byte>(fill);
          }
          // 127 is its own quantisation: no rounding, so the results must agree closely.
          std::vector<float> x(inputs, 127.0f * sign);
          for (size_t i = 1; i < x.size(); i += 3) x[i] = -x[i];
          auto actual = multiply(*set, one, w.packed(*set, one.workers), x, 1, outputs);
          auto expected = multiply(reference_operators(), one,
                                   w.packed(reference_operators(), one.workers), x, 1, outputs);
          REQUIRE(relative_rms(actual, expected) < 1e-5);
        }
    }
}

TEST_CASE("a row with a number that is none spoils itself only") {
  machine two{2};
  for (const auto* set : sets(true))
    for (const auto& known : tensor_types)
      for (float bad :
           {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
        const auto type = known.type;
        CAPTURE(set->name);
        CAPTURE(to_string(type));
        randomness random{17};
        constexpr uint32_t rows = 9, outputs = 33;
        const auto inputs = whole_blocks(type, 64);
        weights w{type, outputs, inputs, random};
        auto packed = w.packed(*set, two.workers);
        auto x = random.normals(rows * inputs);
        auto clean = multiply(*set, two, packed, x, rows, outputs);
        x[4 * inputs + 40] = bad;
        auto spoiled = multiply(*set, two, packed, x, rows, outputs);
        for (uint32_t m = 0; m < rows; ++m)
          for (uint32_t n = 0; n < outputs; ++n) {
            if (m == 4)
              REQUIRE(!std::isfinite(spoiled[m * outputs + n]));
            else
              REQUIRE(spoiled[m * outputs + n] == clean[m * outputs + n]);
          }
      }
}

TEST_CASE("rows of an embedding are the rows of the file") {
  machine two{2};
  for (const auto* set : sets(false))
    for (const auto& known : tensor_types) {
      const auto type = known.type;
      CAPTURE(set->name);
      CAPTURE(to_string(type));
      randomness random{19};
      constexpr uint32_t outputs = 53;
      const auto inputs = whole_blocks(type, 96);
      weights w{type, outputs, inputs, random};
      std::vector<uint32_t> tokens{0, 52, 16, 15, 52, 31, 32, 7, 48};
      auto actual = poisoned(tokens.size() * inputs), expected = actual;
      set->embed({w.packed(*set, two.workers), tokens, {}, nullptr, actual.data()}, two.context());
      reference_operators().embed(
          {w.packed(reference_operators(), two.workers), tokens, {}, nullptr, expected.data()},
          two.context());
      // Codes and scales are all there after packing, and multiplied in the same order.
      REQUIRE(same_bytes<float>(actual, expected));
    }
}

TEST_CASE("packing keeps the bits per weight of the file, and 3/16 more at most") {
  for (const auto* set : sets(false))
    for (auto [type, name, number, elements, bytes] : tensor_types) {
      CAPTURE(set->name);
      CAPTURE(name);
      constexpr uint32_t outputs = 64, inputs = 4096;
      const auto file_bits = 8.0 * bytes / elements;
      const auto bits =
          8.0 * static_cast<double>(set->packed_bytes(type, outputs, inputs)) / (outputs * inputs);
      CHECK(bits >= file_bits);
      CHECK(bits <= file_bits + (elements == 256 ? 0.1875 : 0));
    }
}
