#include "tests/gpu/kernels/attention_support.hpp"

using namespace lamella;
using namespace lamella::gpu;
using namespace lamella::gpu::test;

TEST_CASE(
    "L-M14 L-M15 N-M16 N-M18 attention in chunks equals one plain softmax, in every kernel set") {
  machine one{1}, three{3};
  for (const auto* set : sets(false))
    for (const auto& s : shapes) {
      CAPTURE(set->name);
      CAPTURE(s.dim);
      CAPTURE(s.group);
      randomness random{21};
      constexpr uint32_t slots = 9000;
      std::vector<bool> used(slots);
      std::vector<sequence> sequences;
      std::vector<piece> pieces;
      std::vector<std::pair<uint32_t, uint32_t>> cuts{
          {0, 1},   {1, 1}, {15, 1}, {16, 1}, {17, 1}, {255, 1},  {256, 1}, {257, 1}, {1025, 1},
          {700, 1}, {0, 1}, {0, 2},  {0, 17}, {3, 16}, {250, 30}, {256, 7}, {511, 3}, {512, 33}};
      sequences.reserve(cuts.size());
      for (auto [first, rows] : cuts) {
        sequences.emplace_back(s, first + rows, random);
        pieces.push_back(
            {&sequences.back(), first, rows, scattered(first + rows, 40, used, random)});
      }
      auto actual = attend(*set, three, s, pieces, slots);
      auto expected = attend(reference_operators(), one, s, pieces, slots);
      REQUIRE(actual.cache == expected.cache); // rounding is exact, and nothing else is written
      for (size_t i = 0; i < pieces.size(); ++i) {
        CAPTURE(pieces[i].first);
        CAPTURE(pieces[i].rows);
        // fp32 throughout, exp to 4e-7; an f16 wire rounds the output to 11 bits, bf16 to 8. Tiles
        // round the weights of positions to 8 bits.
        auto tolerance = s.wire == half_type::f32 ? 3e-6 : s.wire == half_type::f16 ? 5e-4 : 4e-3;
        if (on_tiles(*set, s)) tolerance = std::max(tolerance, 5e-3);
        REQUIRE(relative_rms(as_floats(actual.outputs[i], s.wire),
                             as_floats(expected.outputs[i], s.wire))
                < tolerance);
      }
    }
}

TEST_CASE("L-M14 attention is the same wherever the slots are cut") {
  machine two{2};
  for (const auto* set : sets(true))
    for (const auto& s :
         {shapes[0], shapes[2], shapes[5], shapes[8], shapes[first_q8], shapes[first_q8 + 2],
          shapes[first_q4], shapes[first_q4 + 2], shapes[first_tiled]}) {
      CAPTURE(set->name);
      CAPTURE(s.dim);
      randomness random{22};
      constexpr uint32_t slots = 4000, length = 600;
      sequence seq{s, length, random};
      for (auto [first, rows] : {std::pair{599u, 1u}, {560u, 40u}}) {
        piece whole{&seq, first, rows, {{100, length}}};
        auto expected = attend(*set, two, s, {whole}, slots).outputs[0];
        for (uint32_t longest : {1u, 2u, 15u, 16u, 17u, 64u, 255u, 256u, 257u}) {
          CAPTURE(longest);
          std::vector<bool> used(slots);
          piece cut{&seq, first, rows, scattered(length, longest, used, random)};
          REQUIRE(attend(*set, two, s, {cut}, slots).outputs[0] == expected);
        }
      }
    }
}

TEST_CASE("L-M15 a prefilled row has the same bytes as a decoded one, however the prompt is cut") {
  machine one{1}, three{3};
  for (const auto* set : sets(true))
    for (const auto& s : {shapes[0], shapes[1], shapes[2], shapes[4], shapes[6], shapes[9],
                          shapes[first_q8], shapes[first_q8 + 1], shapes[first_q8 + 3],
                          shapes[first_q4], shapes[first_q4 + 1], shapes[first_q4 + 3],
                          shapes[first_q4 + 4], shapes[first_tiled], shapes[first_tiled + 1]}) {
      CAPTURE(set->name);
      CAPTURE(s.dim);
      randomness random{23};
      constexpr uint32_t slots = 3000;
      const uint32_t length = set == &reference_operators() ? 50 : 540; // it is slow
      sequence seq{s, length, random};
      std::vector<bool> used(slots);
      auto runs = scattered(length, 30, used, random);
      auto whole = attend(*set, three, s, {{&seq, 0, length, runs}}, slots).outputs[0];
      for (uint32_t rows : {1u, 2u, 5u, 16u, 17u, 100u, 256u, 300u})
        for (uint32_t first :
             {0u, 1u, 14u, 16u, 239u, 240u, 254u, 255u, 256u, 257u, 270u, 511u, 513u}) {
          if (first + rows > length) continue;
          CAPTURE(first);
          CAPTURE(rows);
          auto part =
              attend(*set, rows % 2 != 0 ? one : three, s, {{&seq, first, rows, runs}}, slots);
          for (uint32_t i = 0; i < rows; ++i)
            REQUIRE(row_of(s, part.outputs[0], rows, i) == row_of(s, whole, length, first + i));
        }
    }
}

TEST_CASE(
    "L-M14 N-M17 a row's attention does not depend on its batch, its place in it or the team") {
  machine one{1}, two{2}, five{5};
  for (const auto* set : sets(true))
    for (const auto& s : {shapes[0], shapes[3], shapes[first_q8 + 1], shapes[first_q4 + 1],
                          shapes[first_tiled + 1]}) {
      CAPTURE(set->name);
      randomness random{24};
      constexpr uint32_t slots = 9000;
      std::vector<bool> used(slots);
      std::vector<sequence> sequences;
      std::vector<piece> pieces;
      std::vector<uint32_t> lengths{0, 1, 7, 17, 54, 256, 300, 513, 1300, 3000};
      sequences.reserve(lengths.size());
      for (auto length : lengths) {
        auto rows = length % 2 == 0 ? 1u : 4u;
        sequences.emplace_back(s, length + rows, random);
        pieces.push_back(
            {&sequences.back(), length, rows, scattered(length + rows, 50, used, random)});
      }
      auto expected = attend(*set, one, s, pieces, slots);
      for (auto* on : {&two, &five})
        REQUIRE(attend(*set, *on, s, pieces, slots).outputs == expected.outputs);
      for (size_t i = 0; i < pieces.size(); ++i)
        REQUIRE(attend(*set, two, s, {pieces[i]}, slots).outputs[0] == expected.outputs[i]);
      std::vector<size_t> order(pieces.size());
      std::iota(order.begin(), order.end(), size_t{0});
      std::shuffle(order.begin(), order.end(), random.engine());
      std::vector<piece> shuffled;
      for (auto i : order) shuffled.push_back(pieces[i]);
      auto mixed = attend(*set, five, s, shuffled, slots);
      for (size_t i = 0; i < order.size(); ++i)
        REQUIRE(mixed.outputs[i] == expected.outputs[order[i]]);
    }
}

TEST_CASE("a wire and a cache of two kinds of 16 bits, and a wire with scales, are refused") {
  const auto has_16_bits = [](half_type x) { return x == half_type::f16 || x == half_type::bf16; };
  for (const auto* set : sets(true))
    for (auto wire : {half_type::f32, half_type::f16, half_type::bf16})
      for (auto cache :
           {half_type::f32, half_type::f16, half_type::bf16, half_type::q8, half_type::q4}) {
        attention_args x{};
        x.kv.type = cache;
        x.wire = wire;
        const bool mixed = has_16_bits(wire) && has_16_bits(cache) && wire != cache;
        CHECK((set->attention_unsupported(x) != nullptr) == mixed);
        for (const auto with_scales : {half_type::q8, half_type::q4}) {
          x.wire = with_scales;
          CHECK(set->attention_unsupported(x) != nullptr);
        }
      }
}

TEST_CASE("attention over q8 and q4 is near that over fp32, in every set") {
  machine two{2};
  for (const auto* set : sets(true)) {
    CAPTURE(set->name);
    for (uint32_t dim : {64u, 128u}) {
      const shape exact{2, 3, dim, half_type::f32, half_type::f32},
          q8{2, 3, dim, half_type::f32, half_type::q8},
          q4{2, 3, dim, half_type::f32, half_type::q4};
      randomness random{26};
      constexpr uint32_t length = 400;
      const sequence seq{exact, length, random};
      const std::vector<piece> pieces{{&seq, length - 1, 1, {{0, length}}}};
      const auto expected =
          as_floats(attend(*set, two, exact, pieces, length).outputs[0], half_type::f32);
      const auto off = [&](const shape& s) {
        return relative_rms(as_floats(attend(*set, two, s, pieces, length).outputs[0], s.wire),
                            expected);
      };
      const auto far = off(q8), further = off(q4);
      // Each element is off by up to half of 1/127 of its head's largest, of which normal ones have
      // 2.5 to 3 deviations: 7e-3 of a deviation at random, in K (through the scores) and in V.
      CHECK(far < 1.5e-2);
      CHECK(far > 1e-3);
      // Half of 1/15 of a range of 4 deviations: 0.08 of a deviation at random.
      CHECK(further < 0.2);
      CHECK(further > 2e-2);
    }
  }
}

TEST_CASE("attention stays exact when scores are far apart") {
  // Maxima that keep rising, and early positions that end with no weight at all.
  machine two{2};
  for (const auto* set : sets(false)) {
    CAPTURE(set->name);
    shape s{1, 2, 64, half_type::f32, half_type::f32};
    randomness random{25};
    constexpr uint32_t length = 700;
    sequence seq{s, length, random};
    for (uint32_t p = 0; p < length; ++p)
      for (uint32_t j = 0; j < s.dim; ++j) {
        seq.k[p * s.dim + j] = static_cast<float>(p) * 0.05f;
        seq.q[(p * 2) * s.dim + j] = 1.0f;
        seq.q[(p * 2 + 1) * s.dim + j] = -1.0f;
      }
    std::vector<piece> pieces{{&seq, 699, 1, {{0, length}}}};
    auto actual = as_floats(attend(*set, two, s, pieces, length).outputs[0], s.wire);
    auto expected =
        as_floats(attend(reference_operators(), two, s, pieces, length).outputs[0], s.wire);
    // Scores reach 280, where an fp32 step is 3e-5: that much of each weight is uncertain.
    REQUIRE(relative_rms(actual, expected) < 1e-4);
  }
}
