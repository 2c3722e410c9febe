// Every rule on hostile GGUF files is enforced with an error that names the field.
#include "model/files/checkpoint.hpp"
#include "model/files/gguf.hpp"
#include "model/files/open_checkpoint.hpp"
#include "tests/scratch_folder.hpp"
#include "tests/tiny_model.hpp"

#include <doctest/doctest.h>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <limits>

using namespace lamella;
using model::tensor_type;
using tests::gguf_writer;

namespace {

/// A tiny model that `breaking` made wrong is refused, and the error names `field`.
void refuses(const std::string& field, const std::function<void(gguf_writer&)>& breaking) {
  tests::scratch_folder folder;
  gguf_writer writer = tests::make_tiny_model({.layers = 1});
  breaking(writer);
  writer.write(folder / "m.gguf");
  CAPTURE(field);
  try {
    model::open_checkpoint(folder / "m.gguf");
    FAIL_CHECK("the file was accepted");
  } catch (const file_error& error) {
    CAPTURE(std::string(error.what()));
    CHECK(error.field().find(field) != std::string::npos);
    CHECK(error.file().filename() == "m.gguf");
    CHECK(error.offset().has_value());
    CHECK(std::string(error.what()).find("m.gguf") != std::string::npos);
  }
}

/// As refuses(), with a key set to a value of another type or size.
void refuses_key(const std::string& key, uint32_t type, const std::string& bytes) {
  refuses(key, [&](gguf_writer& writer) { writer.set(key, type, bytes); });
}

} // namespace

TEST_CASE("every claim of the header is bounded") {
  refuses("version", [](gguf_writer& w) { w.version = 1; });
  refuses("version", [](gguf_writer& w) { w.version = 4; });
  refuses("version", [](gguf_writer& w) { w.version = 3u << 24; });
  refuses("key count", [](gguf_writer& w) { w.key_count = model::gguf_limit::keys + 1; });
  refuses("key count", [](gguf_writer& w) { w.key_count = ~uint64_t{0}; });
  refuses("tensor count", [](gguf_writer& w) { w.tensor_count = model::gguf_limit::tensors + 1; });
  refuses("keys and tensors", [](gguf_writer& w) {
    w.keys.clear();
    w.tensors.clear();
    w.key_count = 60'000;
  });
  refuses("key 0", [](gguf_writer& w) { w.keys[0].name = std::string(257, 'k'); });
  refuses("key 1", [](gguf_writer& w) { w.keys[1].name = ""; });
  refuses("general.name", [](gguf_writer& w) { w.keys.push_back(w.keys[1]); });
  refuses_key("general.name", 13, "");
  refuses_key("general.name", 8, gguf_writer::raw(model::gguf_limit::string_bytes + 1));
  refuses_key("general.name", 8, gguf_writer::raw(uint64_t{15} << 20));
  refuses_key("general.name", 8, gguf_writer::raw(~uint64_t{0}));
  refuses_key("tokenizer.ggml.add_bos_token", 7, "\x02");
}

TEST_CASE("every part of a split model is told as one, also those that lack the model's own keys") {
  refuses("split.count", [](gguf_writer& w) { w.set_u32("split.count", 2); });
  refuses("split.count", [](gguf_writer& w) {
    w.keys.clear(); // as in all parts but the first
    w.set_u32("split.count", 2);
  });
}

TEST_CASE("arrays are bounded, inside the file and not nested") {
  refuses_key("extra", 9, tests::gguf_array(4, model::gguf_limit::array_elements + 1));
  refuses_key("extra", 9, tests::gguf_array(4, model::gguf_limit::array_elements));
  refuses_key("extra", 9, tests::gguf_array(9, 1));
  refuses_key("extra", 9, tests::gguf_array(13, 1));
  refuses_key("extra", 9, tests::gguf_array(8, 1, gguf_writer::raw(~uint64_t{0})));
  refuses_key("extra", 9, tests::gguf_array(8, 1u << 24));
}

TEST_CASE("keys of the format have their types and ranges") {
  refuses_key("general.architecture", 4, gguf_writer::raw(uint32_t{1}));
  refuses_key("general.architecture", 8, gguf_writer::counted("../llama"));
  refuses_key("general.architecture", 8, gguf_writer::counted(""));
  for (const uint32_t wrong : {0u, 1u, 4u, 24u, 33u, 1u << 17})
    refuses_key("general.alignment", 4, gguf_writer::raw(wrong));
  refuses_key("general.alignment", 8, gguf_writer::counted("32"));
  refuses_key("split.count", 2, gguf_writer::raw(uint16_t{6}));
  refuses_key("tokenizer.chat_template", 4, gguf_writer::raw(uint32_t{1}));
  tests::scratch_folder folder;
  gguf_writer nameless = tests::make_tiny_model();
  nameless.remove("general.architecture");
  nameless.write(folder / "m.gguf");
  CHECK_THROWS_WITH_AS(model::open_checkpoint(folder / "m.gguf"),
                       doctest::Contains("general.architecture: is missing"), file_error);
}

TEST_CASE("tensors have a known type, a shape that fits it, and a name of their own") {
  const auto tensor = [](const char* field, auto&& change) {
    refuses(field, [&](gguf_writer& w) { change(w.named("blk.0.attn_q.weight")); });
  };
  tensor("rank", [](auto& t) { t.dimensions.clear(); });
  tensor("rank", [](auto& t) { t.dimensions = {2, 2, 2, 2, 2}; });
  tensor("dimension 1", [](auto& t) { t.dimensions[1] = 0; });
  tensor("dimension 0", [](auto& t) { t.dimensions[0] = 0; });
  tensor("dimension 1", [](auto& t) { t.dimensions = {uint64_t{1} << 40, uint64_t{1} << 40}; });
  tensor("dimension 0", [](auto& t) { t.dimensions[0] = ~uint64_t{0}; });
  tensor("dimension 0", [](auto& t) {
    t.type = 8;
    t.dimensions[0] = 95;
  });
  for (const uint32_t super_blocks : {10u, 11u, 12u, 13u, 14u, 23u})
    tensor("dimension 0", [&](auto& t) { t.type = super_blocks; }); // rows of 96
  for (const uint32_t type : {4u, 9u, 15u, 16u, 31u, 40u, ~0u})
    tensor("attn_q.weight' type", [&](auto& t) { t.type = type; });
  tensor("name of tensor", [](auto& t) { t.name = std::string(257, 'n'); });
  tensor("name of tensor", [](auto& t) { t.name = ""; });
  tensor("blk.0.attn_k.weight", [](auto& t) { t.name = "blk.0.attn_k.weight"; });

  tests::scratch_folder folder;
  gguf_writer writer = tests::make_tiny_model();
  writer.named("output_norm.weight").type = 12;
  writer.write(folder / "m.gguf");
  CHECK_THROWS_WITH_AS(model::open_checkpoint(folder / "m.gguf"),
                       doctest::Contains("is 96, must be a multiple of 256 in type q4_k"),
                       file_error);
  writer.named("output_norm.weight").type = 16;
  writer.write(folder / "m.gguf");
  CHECK_THROWS_WITH_AS(model::open_checkpoint(folder / "m.gguf"),
                       doctest::Contains("is IQ2_XXS (16); F32 F16 BF16 Q8_0 Q4_0 Q4_1 Q5_0 Q5_1 "
                                         "Q2_K Q3_K Q4_K Q5_K Q6_K IQ4_NL IQ4_XS are read"),
                       file_error);
}

TEST_CASE("tensors lie aligned inside the data section and apart from each other") {
  const auto offset = [](uint64_t value) {
    refuses("blk.0.attn_q.weight' offset",
            [&](gguf_writer& w) { w.named("blk.0.attn_q.weight").offset = value; });
  };
  offset(1);
  offset(31);
  offset(uint64_t{1} << 40);
  offset(~uint64_t{0} - 31);
  refuses("overlaps", [](gguf_writer& w) {
    // The name of a tensor decides nothing: put one over another, wherever both are in the table.
    w.named("blk.0.attn_q.weight").offset = 0;
    w.named("blk.0.attn_q.weight").name = "overlaps";
  });
  tests::scratch_folder folder;
  gguf_writer writer = tests::make_tiny_model();
  writer.tensors.push_back({"last", {4}, 0, std::string(64, 'x'), {}});
  writer.write(folder / "m.gguf");
  CHECK_NOTHROW(model::open_checkpoint(folder / "m.gguf"));
  writer.tensors.back().offset = writer.file().size() - writer.header().size() - 60;
  writer.write(folder / "m.gguf");
  CHECK_THROWS_WITH_AS(model::open_checkpoint(folder / "m.gguf"),
                       doctest::Contains("must be a multiple of 32"), file_error);
  writer.tensors.pop_back();
  writer.named("blk.1.ffn_up.weight").offset = 32;
  writer.write(folder / "m.gguf");
  CHECK_THROWS_WITH_AS(model::open_checkpoint(folder / "m.gguf"), doctest::Contains("overlaps"),
                       file_error);
}

TEST_CASE("counts stay within the compiled maxima and agree with the tensors") {
  const auto u32 = [](const std::string& key, uint32_t value) {
    refuses_key("llama." + key, 4, gguf_writer::raw(value));
  };
  u32("block_count", 0);
  u32("block_count", 2);
  u32("block_count", model::gguf_limit::layers + 1);
  u32("embedding_length", 0);
  u32("embedding_length", model::gguf_limit::embedding + 1);
  u32("feed_forward_length", model::gguf_limit::feed_forward + 1);
  u32("attention.head_count", 0);
  u32("attention.head_count", model::gguf_limit::heads + 1);
  u32("attention.head_count_kv", 7);
  u32("context_length", model::gguf_limit::context + 1);
  u32("vocab_size", uint32_t{model::vocabulary_max} + 1);
  refuses_key("llama.block_count", 5, gguf_writer::raw(int32_t{-1}));
  refuses("token_embd.weight", [](gguf_writer& w) { w.set_u32("llama.embedding_length", 64); });
  refuses("token_embd.weight",
          [](gguf_writer& w) { w.named("token_embd.weight").dimensions[1] -= 1; });
  refuses("blk.7.attn_q.weight",
          [](gguf_writer& w) { w.named("blk.0.attn_q.weight").name = "blk.7.attn_q.weight"; });
  refuses("blk.x.weight",
          [](gguf_writer& w) { w.named("blk.0.attn_q.weight").name = "blk.x.weight"; });
}

TEST_CASE("the tokeniser's arrays agree with each other") {
  const std::string prefix = "tokenizer.ggml.";
  refuses_key(prefix + "tokens", 4, gguf_writer::raw(uint32_t{1}));
  refuses_key(prefix + "tokens", 9, tests::gguf_array(0, 278, std::string(278, 'a')));
  refuses_key(
      prefix + "tokens", 9,
      tests::gguf_array(0, model::vocabulary_max + 1, std::string(model::vocabulary_max + 1, 'a')));
  refuses_key(prefix + "tokens", 9,
              tests::gguf_array(8, 1, gguf_writer::counted(std::string(4097, 'a'))));
  refuses_key(prefix + "token_type", 9, tests::gguf_array(5, 1, gguf_writer::raw(int32_t{1})));
  refuses_key(prefix + "token_type", 9, tests::gguf_array(0, 278, std::string(278, '\7')));
  refuses_key(prefix + "scores", 9, tests::gguf_array(6, 1, gguf_writer::raw(1.f)));
  refuses_key(prefix + "merges", 9, tests::gguf_array(0, 2, "ab"));
  refuses_key(prefix + "bos_token_id", 4, gguf_writer::raw(uint32_t{278}));
  refuses_key(prefix + "eos_token_id", 5, gguf_writer::raw(int32_t{-1}));
  refuses_key(prefix + "add_bos_token", 4, gguf_writer::raw(uint32_t{1}));
  refuses_key(prefix + "add_space_prefix", 4, gguf_writer::raw(uint32_t{1}));
  refuses_key(prefix + "pre", 4, gguf_writer::raw(uint32_t{1}));
}
