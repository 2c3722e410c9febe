// Tiny random models of every architecture against an oracle that nobody here wrote
// (families_golden.py): the reference operators, with nothing rounded on the wire or in the cache.
#include "tests/golden/families.hpp"
#include "tests/golden/oracle_files.hpp"
#include "tests/pipeline_runs.hpp"

using namespace lamella;
using namespace lamella::test;

namespace {

/// What the oracle said of one family.
struct family_logits {
  uint64_t file_hash = 0;
  std::vector<uint32_t> positions;
  logits rows;
};

family_logits read_family(const std::string& name) {
  std::ifstream in(tests::detail::golden(("family_" + name + ".txt").c_str()));
  REQUIRE_MESSAGE(in.good(), name);
  std::string line;
  std::getline(in, line); // says what made it
  family_logits all;
  size_t count = 0, vocabulary = 0;
  in >> std::hex >> all.file_hash >> std::dec >> count >> vocabulary;
  for (size_t i = 0; i < count; ++i) {
    in >> all.positions.emplace_back();
    auto& row = all.rows.emplace_back(vocabulary);
    for (auto& x : row) in >> x;
  }
  REQUIRE_MESSAGE(!in.fail(), name);
  return all;
}

uint64_t hash_of(const std::string& bytes) {
  uint64_t state = 0xCBF29CE484222325u;
  for (const char c : bytes) state = (state ^ static_cast<unsigned char>(c)) * 0x100000001B3u;
  return state;
}

} // namespace

TEST_CASE_FIXTURE(models, "every architecture computes what the oracle does") {
  for (const auto& family : tests::families()) {
    CAPTURE(family.name);
    const auto golden = read_family(family.name);
    // Else the oracle has seen another model.
    REQUIRE(hash_of(tests::make_tiny_model(family.options).file()) == golden.file_hash);
    const auto model = load(family.options);
    constexpr auto f32 = gpu::half_type::f32;
    pipeline p{model, {.wire = f32, .kv = f32}};
    const auto tokens = tests::family_tokens(p.spec().vocabulary);
    const auto all = run_chunked(p, tokens, 100, whole(static_cast<uint32_t>(tokens.size())));
    logits found;
    for (const auto position : golden.positions) found.push_back(all.at(position));
    const auto apart = difference(found, golden.rows);
    MESSAGE(family.name << ": max|a-b|/max|b| " << apart);
    CHECK(apart < 1e-4); // rounding: some 1e-6 (the bound of the house is 1e-3)
  }
}
