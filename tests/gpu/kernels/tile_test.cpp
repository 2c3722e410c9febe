// Products and attention on tiles: the twin of the tile operation everywhere, the instruction where
// it exists. Products by AVX-VNNI where the machine has it.
#include "gpu/kernels/sets.hpp"
#include "tests/gpu/kernels/attention_support.hpp"

using namespace lamella;
using namespace lamella::gpu;
using namespace lamella::gpu::test;
using lamella::model::tensor_type;

namespace {

bool any_type(tensor_type) { return true; }
bool is_bf16(tensor_type type) { return type == tensor_type::bf16; }
/// Products of bf16 weights are summed otherwise on tiles.
bool same_without_tiles(tensor_type type) { return !is_bf16(type); }

/// Products of one input with a matrix of each wanted type, several of them at once.
struct products {
  products(uint32_t rows_of_input, uint32_t outputs, uint32_t inputs_wanted,
           bool (*wanted)(tensor_type), randomness& random)
      : rows{rows_of_input}, inputs{inputs_wanted}, x{random.normals(size_t{rows} * inputs)} {
    for (const auto& known : model::tensor_types)
      if (inputs % known.block_elements == 0 && wanted(known.type))
        all.emplace_back(known.type, outputs, inputs, random);
  }

  std::vector<std::vector<float>> by(const operators& set, machine& on) {
    std::vector<matmul_part> parts;
    std::vector<std::vector<float>> outs;
    for (auto& w : all) {
      outs.push_back(poisoned(size_t{rows} * (w.outputs + 1)));
      parts.push_back({w.packed(set, on.workers), outs.back().data(), w.outputs + 1});
    }
    set.matmul({x.data(), rows, parts}, on.context());
    return outs;
  }

  uint32_t rows, inputs;
  std::vector<float> x;
  std::vector<weights> all;
};

/// Both sets give the same bytes, for rows that fill tiles and rows that do not.
void check_same_products(const operators& a, const operators& b, bool (*wanted)(tensor_type)) {
  machine one{1}, three{3};
  uint64_t seed = 1;
  for (uint32_t rows : {1u, 15u, 16u, 17u, 31u, 33u, 127u, 128u, 129u, 300u})
    for (uint32_t outputs : {1u, 16u, 83u})
      for (uint32_t inputs : {32u, 96u, 512u}) {
        if (rows > 33 && inputs == 96) continue;
        CAPTURE(rows);
        CAPTURE(outputs);
        CAPTURE(inputs);
        randomness random{++seed};
        products p{rows, outputs, inputs, wanted, random};
        const auto found = p.by(a, three), expected = p.by(b, one);
        for (size_t i = 0; i < p.all.size(); ++i) {
          CAPTURE(to_string(p.all[i].type));
          REQUIRE(same_bytes<float>(found[i], expected[i]));
        }
      }
}

} // namespace

TEST_CASE("products on tiles have the bytes of those without") {
  check_same_products(tile_twin(), without_tiles(), same_without_tiles);
}

TEST_CASE("products of bf16 weights whose sums take several rounds of tiles") {
  machine one{1}, three{3};
  for (const auto* set : sets(true))
    for (const uint32_t inputs : {2048u, 2049u, 2100u, 4160u}) {
      CAPTURE(set->name);
      CAPTURE(inputs);
      randomness random{inputs};
      constexpr uint32_t rows = 150, outputs = 83;
      products p{rows, outputs, inputs, is_bf16, random};
      const auto all = p.by(*set, three), expected = p.by(reference_operators(), one);
      for (const uint32_t some : {1u, 16u, 33u}) {
        CAPTURE(some);
        p.rows = some;
        const auto found = p.by(*set, three);
        for (size_t i = 0; i < p.all.size(); ++i) {
          CAPTURE(to_string(p.all[i].type));
          REQUIRE(same_bytes<float>(found[i], std::span{all[i]}.first(found[i].size())));
        }
      }
      for (size_t i = 0; i < p.all.size(); ++i)
        for (uint32_t m = 0; m < rows; ++m) {
          const auto row = [&](const std::vector<float>& x) {
            return std::span{x}.subspan(size_t{m} * (outputs + 1), outputs);
          };
          REQUIRE(relative_rms(row(all[i]), row(expected[i])) < 2e-5);
        }
    }
}

TEST_CASE("the instruction gives the bytes of its twin") {
  std::string reason;
  const auto* amx = find_operators("amx", &reason);
  if (amx == nullptr) {
    MESSAGE("skipped: " << reason);
    return;
  }
  check_same_products(*amx, tile_twin(), any_type);
}

TEST_CASE("N-M18 products by AVX-VNNI have the bytes of those of AVX2") {
  std::string reason;
  const auto* by_vnni = find_operators("avx2", &reason);
  if (by_vnni == nullptr || by_vnni == avx2_operators()) {
    MESSAGE("skipped: " << (reason.empty() ? "no AVX-VNNI" : reason));
    return;
  }
  CHECK(by_vnni->name == avx2_operators()->name);
  check_same_products(*by_vnni, *avx2_operators(), any_type);
}

TEST_CASE("N-M18 attention on the tiles of this machine has the bytes of their twin") {
  std::string reason;
  const auto* amx = find_operators("amx", &reason);
  if (amx == nullptr) {
    MESSAGE("skipped: " << reason);
    return;
  }
  machine two{2};
  for (const auto& s : shapes) {
    CAPTURE(s.dim);
    CAPTURE(s.group);
    randomness random{27};
    constexpr uint32_t slots = 4000;
    std::vector<bool> used(slots);
    const sequence a{s, 300, random}, b{s, 41, random}, c{s, 700, random};
    const std::vector<piece> pieces{{&a, 299, 1, scattered(300, 40, used, random)},
                                    {&b, 40, 1, scattered(41, 40, used, random)},
                                    {&c, 560, 140, scattered(700, 40, used, random)}};
    REQUIRE(attend(*amx, two, s, pieces, slots).outputs
            == attend(tile_twin(), two, s, pieces, slots).outputs);
  }
}

TEST_CASE("attention where more queries share a head than a tile has rows") {
  machine two{2};
  for (const auto* set : sets(false))
    for (const shape& s : {shape{1, 20, 64, half_type::f32, half_type::bf16},
                           shape{1, 71, 64, half_type::f32, half_type::bf16},
                           shape{2, 33, 40, half_type::f32, half_type::bf16}}) {
      CAPTURE(set->name);
      CAPTURE(s.group);
      randomness random{28};
      const sequence seq{s, 300, random};
      const std::vector<piece> pieces{{&seq, 299, 1, {{0, 300}}}};
      const auto one = attend(*set, two, s, pieces, 400).outputs[0];
      const auto some = attend(*set, two, s, {{&seq, 250, 50, {{0, 300}}}}, 400).outputs[0];
      REQUIRE(row_of(s, some, 50, 49) == one);
      const auto expected = attend(reference_operators(), two, s, pieces, 400).outputs[0];
      REQUIRE(relative_rms(as_floats(one, s.wire), as_floats(expected, s.wire)) < 5e-3);
    }
}
