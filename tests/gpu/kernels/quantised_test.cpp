// Blocks and a model that llama.cpp quantised, and what they mean: tests/golden/quantised_golden.py
// made both files, nothing of ours took part in it.
#include "tests/golden/oracle_files.hpp"
#include "tests/gpu/kernels/kernel_support.hpp"
#include "tests/pipeline_runs.hpp"

#include <doctest/doctest.h>

using namespace lamella;
using namespace lamella::test;
using model::tensor_type;
using tests::detail::byte_reader;
using tests::detail::golden;

namespace {

/// Blocks of one type, one after the other, and their elements.
struct golden_blocks {
  tensor_type type;
  std::vector<std::byte> bytes;
  std::vector<float> values;
};

/// blocks.bin: "LAMBLOC1", u32 types; for each u32 number of the type in GGUF files, u32 blocks,
/// the blocks, f32 elements.
std::vector<golden_blocks> read_blocks() {
  byte_reader in(golden("blocks.bin"));
  const auto magic = in.take<char>(8);
  REQUIRE(std::string(magic.begin(), magic.end()) == "LAMBLOC1");
  std::vector<golden_blocks> all(in.one<uint32_t>());
  for (auto& x : all) {
    const auto number = in.one<uint32_t>(), count = in.one<uint32_t>();
    const auto known = std::find_if(model::tensor_types.begin(), model::tensor_types.end(),
                                    [&](const auto& facts) { return facts.gguf_number == number; });
    REQUIRE(known != model::tensor_types.end());
    x.type = known->type;
    x.bytes = in.take<std::byte>(size_t{count} * known->block_bytes);
    x.values = in.take<float>(size_t{count} * known->block_elements);
  }
  REQUIRE(in.at_end());
  return all;
}

/// mixed_4_bit_logits.bin: "LAMMIXD1", u32 tokens, vocabulary; u32 tokens; f32 logits after each.
std::pair<std::vector<uint32_t>, logits> read_logits() {
  byte_reader in(golden("mixed_4_bit_logits.bin"));
  const auto magic = in.take<char>(8);
  REQUIRE(std::string(magic.begin(), magic.end()) == "LAMMIXD1");
  const auto count = in.one<uint32_t>(), vocabulary = in.one<uint32_t>();
  auto tokens = in.take<uint32_t>(count);
  logits rows;
  for (uint32_t i = 0; i < count; ++i) rows.push_back(in.take<float>(vocabulary));
  REQUIRE(in.at_end());
  return {tokens, rows};
}

} // namespace

TEST_CASE("every set reads quantised blocks as their makers do, bit for bit") {
  gpu::test::machine two{2};
  const auto all = read_blocks();
  size_t quantised = 0;
  for (const auto& known : model::tensor_types) quantised += known.block_elements != 1;
  CHECK(all.size() == quantised);
  for (const auto& x : all)
    for (const auto* set : gpu::test::sets(true)) {
      CAPTURE(to_string(x.type));
      CAPTURE(set->name);
      // Rows of 256, so that each is one super-block, or eight blocks.
      gpu::test::randomness random{1};
      const auto rows = static_cast<uint32_t>(x.values.size() / 256);
      gpu::test::weights table{x.type, rows, 256, random};
      REQUIRE(table.file.size() == x.bytes.size());
      table.file = x.bytes;
      std::vector<uint32_t> all_rows(rows);
      for (uint32_t n = 0; n < rows; ++n) all_rows[n] = n;
      auto read = gpu::test::poisoned(x.values.size());
      set->embed({table.packed(*set, two.workers), all_rows, {}, nullptr, read.data()},
                 two.context());
      // Products are exact and sums are rounded once, in any order: nothing may differ.
      CHECK(gpu::test::same_bytes<float>(read, x.values));
    }
}

TEST_CASE("a file that llama.cpp made of several types loads and gives its logits") {
  const auto [tokens, expected] = read_logits();
  const auto model = model::load_program(golden("mixed_4_bit.gguf"));
  const auto type_of = [&](const char* name) { return model.file->find(name)->type; };
  CHECK(type_of("token_embd.weight") == tensor_type::q6_k);
  CHECK(type_of("blk.0.attn_q.weight") == tensor_type::q4_k);
  CHECK(type_of("blk.0.attn_v.weight") == tensor_type::q6_k);
  CHECK(type_of("blk.0.attn_output.weight") == tensor_type::q5_0); // rows of 128
  CHECK(type_of("blk.0.ffn_norm.weight") == tensor_type::f32);
  const auto length = static_cast<uint32_t>(tokens.size());
  for (const auto* set : gpu::test::sets(true)) {
    CAPTURE(set->name);
    pipeline p{model, {.ops = set, .wire = gpu::half_type::f32, .kv = gpu::half_type::f32}};
    const auto found = run_chunked(p, tokens, length, whole(length));
    // The reference differs by fp32 sums, the others by activations of 8 bits too, as llama.cpp
    // does (0.008).
    CHECK(difference(found, expected) < (set == &gpu::reference_operators() ? 1e-5 : 0.03));
  }
}
