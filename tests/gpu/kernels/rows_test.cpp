#include "gpu/kernels/scalar_math.hpp"
#include "tests/gpu/kernels/kernel_support.hpp"

#include <algorithm>
#include <bit>
#include <numeric>

using namespace lamella;
using namespace lamella::gpu;
using namespace lamella::gpu::test;

TEST_CASE("exp, log, sine and cosine in double agree with the library's") {
  randomness random{31};
  for (int i = 0; i < 20000; ++i) {
    double x = random.normal() * 100.0;
    CAPTURE(x);
    if (std::fabs(x) < 690) REQUIRE(exp_double(x) == doctest::Approx(std::exp(x)).epsilon(1e-14));
    REQUIRE(log_double(std::exp(x / 2)) == doctest::Approx(x / 2).epsilon(1e-13));
    double sine, cosine, angle = x * 10000;
    sin_cos_double(angle, &sine, &cosine);
    REQUIRE(std::fabs(sine - std::sin(angle)) < 1e-10);
    REQUIRE(std::fabs(cosine - std::cos(angle)) < 1e-10);
  }
  CHECK(exp_double(0) == 1);
  CHECK(exp_double(-1e30) == 0);
}

TEST_CASE("norm, activation and sums equal the reference, for any width") {
  machine one{1}, three{3};
  for (const auto* set : sets(false))
    for (uint32_t rows : {1u, 7u, 54u})
      for (uint32_t width : {1u, 7u, 16u, 17u, 31u, 33u, 576u, 1537u}) {
        CAPTURE(set->name);
        CAPTURE(rows);
        CAPTURE(width);
        randomness random{32};
        auto a = random.normals(size_t{rows} * width), b = random.normals(size_t{rows} * width);
        auto weight = random.normals(width);
        for (auto& x : a) x *= 4; // the bends of the activation
        auto run = [&](const operators& ops, machine& on) {
          std::vector<std::vector<float>> out(5, poisoned(a.size()));
          ops.rms_norm({a.data(), weight.data(), 1e-5f, rows, width, out[0].data()}, on.context());
          ops.silu_mul({a.data(), b.data(), rows, width, out[1].data()}, on.context());
          ops.add({a.data(), b.data(), rows, width, out[2].data()}, on.context());
          ops.add_bias({a.data(), weight.data(), rows, width, out[3].data()}, on.context());
          ops.scale({a.data(), 0.7f, rows, width, out[4].data()}, on.context());
          return out;
        };
        auto actual = run(*set, three), expected = run(reference_operators(), one);
        REQUIRE(relative_rms(actual[0], expected[0]) < 1e-6); // fp32, sums of some 1,500
        REQUIRE(relative_rms(actual[1], expected[1]) < 1e-6); // exp to 4e-7
        REQUIRE(actual[2] == expected[2]);
        REQUIRE(actual[3] == expected[3]);
        REQUIRE(actual[4] == expected[4]);
        REQUIRE(actual[4][0] == a[0] * 0.7f);
        for (size_t i = 0; i < a.size(); ++i) REQUIRE(actual[3][i] == a[i] + weight[i % width]);
      }
}

TEST_CASE("the activation is right far from zero") {
  machine one{1};
  for (const auto* set : sets(true)) {
    CAPTURE(set->name);
    std::vector<float> gate{-1e30f, -200, -100, -88, -80, -20, -0.0f,
                            0,      20,   80,   88,  100, 200, 1e30f};
    std::vector<float> up(gate.size(), 1.0f), out = poisoned(gate.size());
    set->silu_mul({gate.data(), up.data(), 1, static_cast<uint32_t>(gate.size()), out.data()},
                  one.context());
    for (size_t i = 0; i < gate.size(); ++i) {
      CAPTURE(gate[i]);
      if (gate[i] <= -80)
        CHECK(std::fabs(out[i]) <= std::fabs(gate[i]) * 1e-34); // exp ends at e^88; no infinity
      else
        CHECK(out[i] == doctest::Approx(gate[i] / (1 + std::exp(-double{gate[i]}))).epsilon(1e-6));
    }
  }
}

TEST_CASE("operators on rows give a row the same bytes alone, in place and on any team") {
  machine one{1}, five{5};
  for (const auto* set : sets(true)) {
    CAPTURE(set->name);
    randomness random{33};
    constexpr uint32_t rows = 70, width = 192;
    auto a = random.normals(rows * width), b = random.normals(rows * width);
    auto weight = random.normals(width);
    auto all = poisoned(a.size());
    using call = void (*)(const operators&, const float*, const float*, const float*, uint32_t,
                          float*, kernel_context);
    const call calls[] = {[](const operators& ops, const float* x, const float*, const float* w,
                             uint32_t m, float* out, kernel_context c) {
                            ops.rms_norm({x, w, 1e-5f, m, width, out}, c);
                          },
                          [](const operators& ops, const float* x, const float* y, const float*,
                             uint32_t m, float* out, kernel_context c) {
                            ops.silu_mul({x, y, m, width, out}, c);
                          },
                          [](const operators& ops, const float* x, const float* y, const float*,
                             uint32_t m, float* out, kernel_context c) {
                            ops.add({x, y, m, width, out}, c);
                          },
                          [](const operators& ops, const float* x, const float*, const float* w,
                             uint32_t m, float* out, kernel_context c) {
                            ops.add_bias({x, w, m, width, out}, c);
                          },
                          [](const operators& ops, const float* x, const float*, const float*,
                             uint32_t m, float* out, kernel_context c) {
                            ops.scale({x, 0.3f, m, width, out}, c);
                          }};
    for (auto f : calls) {
      f(*set, a.data(), b.data(), weight.data(), rows, all.data(), one.context());
      auto same = a;
      f(*set, same.data(), b.data(), weight.data(), rows, same.data(), five.context());
      REQUIRE(same_bytes<float>(same, all));
      for (uint32_t m = 0; m < rows; ++m) {
        auto row = poisoned(width);
        f(*set, a.data() + m * width, b.data() + m * width, weight.data(), 1, row.data(),
          five.context());
        REQUIRE(same_bytes<float>(row, {all.data() + m * width, width}));
      }
    }
  }
}

// A norm of each head is the norm of as many rows of a head's width.
TEST_CASE("a head's norm depends on that head alone, whatever the number of heads in a row") {
  machine one{1}, five{5};
  for (const auto* set : sets(true))
    for (uint32_t dim : {7u, 16u, 64u, 80u, 128u}) {
      CAPTURE(set->name);
      CAPTURE(dim);
      randomness random{36};
      constexpr uint32_t rows = 17, heads = 6;
      const auto x = random.normals(size_t{rows} * heads * dim), weight = random.normals(dim);
      auto all = poisoned(x.size());
      set->rms_norm({x.data(), weight.data(), 1e-6f, rows * heads, dim, all.data()},
                    five.context());
      for (uint32_t i = 0; i < rows * heads; ++i) {
        const std::span head{x.data() + size_t{i} * dim, dim};
        double squares = 0;
        for (auto v : head) squares += double{v} * v;
        auto alone = poisoned(dim);
        set->rms_norm({head.data(), weight.data(), 1e-6f, 1, dim, alone.data()}, one.context());
        REQUIRE(same_bytes<float>(alone, {all.data() + size_t{i} * dim, dim}));
        for (uint32_t j = 0; j < dim; ++j)
          REQUIRE(alone[j]
                  == doctest::Approx(head[j] / std::sqrt(squares / dim + 1e-6) * weight[j])
                         .epsilon(1e-5));
      }
    }
}

TEST_CASE("rotation equals the reference, keeps what it should and does not depend on the batch") {
  machine one{1}, three{3};
  for (const auto* set : sets(true))
    for (auto pairing : {rope_pairing::interleaved, rope_pairing::halves})
      for (size_t pairs : {1u, 20u, 32u}) {
        CAPTURE(set->name);
        CAPTURE(pairs);
        randomness random{34};
        constexpr uint32_t rows = 17, heads = 3, dim = 64, stride = 250;
        const float magnitude = pairs == 20 ? 1.25f : 1.0f; // of the part that rotates
        std::vector<double> frequencies(pairs);
        for (size_t i = 0; i < pairs; ++i)
          frequencies[i] = std::pow(10000.0, -static_cast<double>(i) / static_cast<double>(pairs));
        std::vector<uint32_t> positions(rows);
        for (auto& p : positions) p = random.below(131072);
        positions[0] = 0;
        auto x = random.normals(rows * stride);
        auto run = [&](const operators& ops, machine& on) {
          auto out = x;
          ops.rope({out.data(), out.data(), rows, heads, dim, stride, pairing, positions,
                    frequencies, magnitude},
                   on.context());
          return out;
        };
        auto actual = run(*set, three);
        auto expected = x;
        for (uint32_t m = 0; m < rows; ++m)
          for (uint32_t h = 0; h < heads; ++h)
            for (size_t i = 0; i < pairs; ++i) {
              auto first = pairing == rope_pairing::halves ? i : 2 * i;
              auto second = pairing == rope_pairing::halves ? i + pairs : 2 * i + 1;
              float* head = expected.data() + m * stride + h * dim;
              double angle = positions[m] * frequencies[i], a = head[first], b = head[second];
              head[first] =
                  static_cast<float>(magnitude * (a * std::cos(angle) - b * std::sin(angle)));
              head[second] =
                  static_cast<float>(magnitude * (b * std::cos(angle) + a * std::sin(angle)));
            }
        for (size_t i = 0; i < x.size(); ++i) REQUIRE(std::fabs(actual[i] - expected[i]) < 1e-6);
        if (magnitude == 1)
          REQUIRE(std::equal(actual.begin(), actual.begin() + stride, x.begin())); // position 0
        REQUIRE(same_bytes<float>(run(*set, one), actual));
        for (uint32_t m = 0; m < rows; ++m) {
          std::vector<float> row(x.begin() + m * stride, x.begin() + (m + 1) * stride);
          set->rope({row.data(),
                     row.data(),
                     1,
                     heads,
                     dim,
                     stride,
                     pairing,
                     {&positions[m], 1},
                     frequencies,
                     magnitude},
                    one.context());
          REQUIRE(same_bytes<float>(row, {actual.data() + m * stride, stride}));
        }
      }
}

TEST_CASE("the wire rounds to nearest even and brings every 16-bit number back") {
  machine two{2};
  std::vector<uint32_t> row{0};
  for (const auto* set : sets(true)) {
    CAPTURE(set->name);
    // All finite halves, and the numbers just around the middle between each two neighbours.
    std::vector<uint16_t> halves;
    for (uint32_t h = 0; h < 0x10000; ++h)
      if ((h & 0x7c00) != 0x7c00) halves.push_back(static_cast<uint16_t>(h));
    auto count = static_cast<uint32_t>(halves.size());
    std::vector<float> values = poisoned(count);
    set->from_wire({reinterpret_cast<const std::byte*>(halves.data()), row, 0, 1, count,
                    half_type::f16, values.data(), count},
                   two.context());
    std::vector<uint16_t> back(count);
    auto to = [&](const std::vector<float>& x) {
      set->to_wire({x.data(), count, row, 0, 1, count, half_type::f16,
                    reinterpret_cast<std::byte*>(back.data())},
                   two.context());
    };
    for (uint32_t i = 0; i < count; ++i) REQUIRE(half_of(values[i]) == halves[i]);
    to(values);
    REQUIRE(back == halves);
    std::vector<float> between(count);
    for (int nudge : {-1, 0, 1}) {
      for (uint32_t i = 0; i < count; ++i) {
        auto next = i + 1 < count && std::signbit(values[i]) == std::signbit(values[i + 1])
                        ? values[i + 1]
                        : values[i];
        auto middle = (values[i] + next) / 2;
        between[i] = nudge == 0 ? middle : std::nextafterf(middle, nudge > 0 ? 1e9f : -1e9f);
      }
      to(between);
      for (uint32_t i = 0; i < count; ++i) {
        CAPTURE(between[i]);
        REQUIRE(back[i] == half_of(between[i]));
      }
    }
    std::vector<float> special(count, 0.0f);
    special[0] = 1e6f, special[1] = -1e6f, special[2] = 65519, special[3] = 65520;
    special[4] = std::numeric_limits<float>::infinity(), special[5] = 1e-30f, special[6] = -1e-30f;
    special[7] = std::numeric_limits<float>::quiet_NaN();
    to(special);
    CHECK(back[0] == 0x7c00);
    CHECK(back[1] == 0xfc00);
    CHECK(back[2] == 0x7bff);
    CHECK(back[3] == 0x7c00);
    CHECK(back[4] == 0x7c00);
    CHECK(back[5] == 0);
    CHECK(back[6] == 0x8000);
    CHECK((back[7] & 0x7fff) > 0x7c00);
  }
}

TEST_CASE("a wire of bf16 rounds to nearest even and brings every number back") {
  machine two{2};
  const std::vector<uint32_t> row{0};
  for (const auto* set : sets(true)) {
    CAPTURE(set->name);
    // All finite numbers; a quarter, a half and three quarters of the way to the next one.
    std::vector<uint16_t> numbers, wanted;
    std::vector<float> between;
    for (uint32_t h = 0; h < 0x10000; ++h) {
      if ((h & 0x7f80) == 0x7f80) continue;
      numbers.push_back(static_cast<uint16_t>(h));
      for (uint32_t quarter = 0; quarter < 4; ++quarter) {
        between.push_back(std::bit_cast<float>(h << 16 | quarter << 14));
        const bool up = quarter == 3 || (quarter == 2 && h % 2 == 1);
        wanted.push_back(static_cast<uint16_t>(h + (up ? 1 : 0)));
      }
    }
    const float infinite = std::numeric_limits<float>::infinity();
    for (const auto& [value, bits] :
         {std::pair{infinite, 0x7f80}, {-infinite, 0xff80}, {1e-45f, 0}, {-1e-45f, 0x8000}}) {
      between.push_back(value);
      wanted.push_back(static_cast<uint16_t>(bits));
    }
    const auto to = [&](const std::vector<float>& x) {
      std::vector<uint16_t> out(x.size());
      const auto count = static_cast<uint32_t>(x.size());
      set->to_wire({x.data(), count, row, 0, 1, count, half_type::bf16,
                    reinterpret_cast<std::byte*>(out.data())},
                   two.context());
      return out;
    };
    CHECK(to(between) == wanted);
    const auto nan =
        to({std::numeric_limits<float>::quiet_NaN(), std::bit_cast<float>(0x7f800001)});
    CHECK((nan[0] & 0x7fff) > 0x7f80);
    CHECK((nan[1] & 0x7fff) > 0x7f80); // the payload's upper half is all zeros
    const auto count = static_cast<uint32_t>(numbers.size());
    auto values = poisoned(count);
    set->from_wire({reinterpret_cast<const std::byte*>(numbers.data()), row, 0, 1, count,
                    half_type::bf16, values.data(), count},
                   two.context());
    size_t wrong = 0;
    for (uint32_t i = 0; i < count; ++i)
      wrong += std::bit_cast<uint32_t>(values[i]) != uint32_t{numbers[i]} << 16;
    CHECK(wrong == 0);
    CHECK(to(values) == numbers);
  }
}

TEST_CASE("the wire lays heads out apart and brings rows back to their places") {
  machine three{3};
  for (const auto* set : sets(true))
    for (auto wire : {half_type::f32, half_type::f16, half_type::bf16})
      for (uint32_t width : {7u, 64u, 192u}) {
        CAPTURE(set->name);
        CAPTURE(width);
        randomness random{35};
        constexpr uint32_t heads = 5, all_rows = 20, first = 1, count = 3;
        auto stride = heads * width + 3;
        auto x = random.normals(all_rows * stride);
        for (auto& v : x) v = std::round(v * 16) / 16; // exact in 16 bits of both kinds
        std::vector<uint32_t> index{19, 0, 7, 8, 3};
        std::vector<std::byte> bytes(count * index.size() * width * bytes_of(wire));
        set->to_wire({x.data(), stride, index, first, count, width, wire, bytes.data()},
                     three.context());
        for (uint32_t h = 0; h < count; ++h)
          for (size_t m = 0; m < index.size(); ++m)
            for (uint32_t j = 0; j < width; ++j) {
              auto value = x[index[m] * stride + (first + h) * width + j];
              const auto* p = bytes.data() + ((h * index.size() + m) * width + j) * bytes_of(wire);
              if (wire == half_type::f32) {
                float stored;
                std::memcpy(&stored, p, 4);
                REQUIRE(stored == value);
              } else {
                uint16_t stored;
                std::memcpy(&stored, p, 2);
                const auto bits =
                    wire == half_type::f16 ? half_of(value) : std::bit_cast<uint32_t>(value) >> 16;
                REQUIRE((stored == bits || value == 0));
              }
            }
        auto back = poisoned(x.size());
        set->from_wire({bytes.data(), index, first, count, width, wire, back.data(), stride},
                       three.context());
        for (uint32_t m = 0; m < all_rows; ++m)
          for (uint32_t j = 0; j < stride; ++j) {
            bool written = std::find(index.begin(), index.end(), m) != index.end()
                           && j >= first * width && j < (first + count) * width;
            if (written)
              REQUIRE(back[m * stride + j] == x[m * stride + j]);
            else
              REQUIRE(std::isnan(back[m * stride + j]));
          }
      }
}

TEST_CASE("kernel sets are found by name, and a refusal says why") {
  std::string reason;
  CHECK(find_operators("reference", &reason) == &reference_operators());
  const auto* best = find_operators("auto", &reason);
  REQUIRE(best != nullptr);
  CHECK(best != &reference_operators());
  CHECK(find_operators(best->name, &reason) == best);
  CHECK(find_operators("fastest", &reason) == nullptr);
  CHECK(reason.find("'fastest'") != std::string::npos);
  CHECK(reason.find("avx512") != std::string::npos);
  CHECK(find_operators("fastest", nullptr) == nullptr);
}
