// What a GGUF file says is taken over exactly, and every rule on hostile files is enforced with an
// error that names the field.
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

std::string array_of(uint32_t element, uint64_t count, const std::string& bytes = {}) {
  return gguf_writer::raw(element) + gguf_writer::raw(count) + bytes;
}

} // namespace

TEST_CASE("a tiny model is read as it was written") {
  tests::scratch_folder folder;
  for (const auto& known : model::tensor_types) {
    const auto type = known.type;
    CAPTURE(to_string(type));
    auto options = tests::tiny_model_of(type);
    options.rope_factors = true;
    gguf_writer writer = tests::make_tiny_model(options);
    writer.write(folder / "tiny.gguf");
    const auto opened = model::open_checkpoint(folder / "tiny.gguf");
    CHECK(opened->architecture() == "llama");
    CHECK(opened->name() == "Tiny");
    CHECK(opened->format() == "GGUF v3");
    CHECK(opened->file_bytes() == writer.file().size());
    CHECK(opened->u32("block_count", 1, 100) == 3);
    CHECK(opened->u32("attention.head_count_kv", 1, 100) == options.kv_heads);
    CHECK(opened->u32("not.there", 0, 100, 7) == 7);
    CHECK(opened->f32("rope.freq_base", 1, 1e9f) == 10000.f);
    CHECK(opened->find_u64s("block_count") == std::vector<uint64_t>{3});
    CHECK_FALSE(opened->find_u64("not.there"));
    CHECK(opened->chat_template().find("<|im_start|>") != std::string::npos);
    CHECK(opened->tokenizer().tokens.size() == 278);
    CHECK(opened->tokenizer().kinds[2] == model::token_kind::control);
    CHECK(opened->tokenizer().eos == 2u);
    CHECK(opened->tensors().size() == writer.tensors.size());
    for (size_t i = 0; i < writer.tensors.size(); ++i) {
      const auto& wrote = writer.tensors[i];
      const auto* read = opened->find(wrote.name);
      REQUIRE(read);
      CHECK(read == &opened->tensors()[i]);
      CHECK(read->inner == wrote.dimensions[0]);
      CHECK(read->rows == (wrote.dimensions.size() > 1 ? wrote.dimensions[1] : 1));
      CHECK(std::string_view(reinterpret_cast<const char*>(read->data.data()), read->data.size())
            == wrote.data);
    }
    const auto width = options.embedding, kv = options.kv_heads * options.head_dim;
    CHECK(opened->tensor("blk.2.attn_k.weight", kv, width).type == type);
    CHECK(opened->tensor("blk.2.attn_norm.weight", 1, width).type == tensor_type::f32);
    opened->check_intact();
    opened->release_pages();
    CHECK(opened->find("output_norm.weight")->data.size() == width * 4);
  }
}

TEST_CASE("questions that the file cannot answer are errors that name key or tensor") {
  tests::scratch_folder folder;
  tests::write_tiny_model(folder / "m.gguf");
  const auto opened = model::open_checkpoint(folder / "m.gguf");
  const auto says = [](auto&& ask, const std::string& words) {
    try {
      ask();
      FAIL_CHECK("no error: " << words);
    } catch (const file_error& error) {
      CAPTURE(std::string(error.what()));
      CHECK(std::string(error.what()).find(words) != std::string::npos);
    }
  };
  says([&] { opened->u32("block_count", 4, 9); }, "llama.block_count");
  says([&] { opened->u32("block_count", 4, 9); }, "is 3, must be 4 to 9");
  says([&] { opened->u32("expert_count", 1, 9); }, "llama.expert_count: is missing");
  says([&] { opened->u32("rope.freq_base", 1, 9); }, "is of type f32, must be an integer");
  says([&] { opened->f32("rope.freq_base", 1, 9); }, "must be 1");
  says([&] { opened->text("block_count"); }, "is of type u32, must be a text");
  says([&] { opened->find_bool("block_count"); }, "must be a bool");
  says([&] { opened->tensor("blk.0.attn_q.weight", 96, 95); }, "has 96 rows of 96, must have");
  says([&] { opened->tensor("blk.0.attn_q.bias", 1, 96); }, "tensor 'blk.0.attn_q.bias'");
  const std::vector<std::string_view> expected{"output_norm.weight"};
  says([&] { opened->refuse_others(expected); }, "token_embd.weight");
}

TEST_CASE("hyperparameters that are arrays, signed or not finite are told apart") {
  tests::scratch_folder folder;
  gguf_writer writer = tests::make_tiny_model();
  writer.set("llama.attention.head_count_kv", 9,
             array_of(4, 3, gguf_writer::raw(std::array<uint32_t, 3>{3, 2, 1})));
  writer.set("llama.a", 5, gguf_writer::raw(int32_t{5}));
  writer.set("llama.b", 5, gguf_writer::raw(int32_t{-5}));
  writer.set_f32("llama.c", std::numeric_limits<float>::quiet_NaN());
  writer.set("llama.d", 9, array_of(6, 1, gguf_writer::raw(1.5f)));
  writer.write(folder / "m.gguf");
  const auto opened = model::open_checkpoint(folder / "m.gguf");
  CHECK(opened->find_u64s("attention.head_count_kv") == std::vector<uint64_t>{3, 2, 1});
  CHECK(opened->find_u64("a") == 5u);
  CHECK_THROWS_AS(opened->find_u64("b"), file_error);
  CHECK(opened->find_f64("b") == -5.0);
  CHECK_THROWS_AS(opened->find_f64("c"), file_error);
  CHECK_THROWS_AS(opened->find_u64s("d"), file_error);
}

TEST_CASE("version 2 and a file that has a vocabulary only are read") {
  tests::scratch_folder folder;
  gguf_writer writer = tests::make_tiny_model();
  writer.version = 2;
  writer.write(folder / "v2.gguf");
  CHECK(model::open_checkpoint(folder / "v2.gguf")->format() == "GGUF v2");
  writer.tensors.clear();
  writer.write(folder / "vocabulary.gguf");
  const auto opened = model::open_checkpoint(folder / "vocabulary.gguf");
  CHECK(opened->tensors().empty());
  CHECK(opened->tokenizer().tokens.size() == 278);
}

TEST_CASE("larger alignments and tensors of rank 3 are read") {
  tests::scratch_folder folder;
  gguf_writer writer = tests::make_tiny_model();
  writer.alignment = 4096;
  writer.set_u32("general.alignment", 4096);
  writer.tensors.push_back({"cube", {4, 3, 2}, 0, std::string(96, 'x'), {}});
  writer.write(folder / "m.gguf");
  const auto opened = model::open_checkpoint(folder / "m.gguf");
  CHECK(opened->tensor("cube", 6, 4).data.size() == 96);
  CHECK(opened->find("token_embd.weight")->data.data() != nullptr);
}

TEST_CASE("digests tell files apart") {
  tests::scratch_folder folder;
  tests::write_tiny_model(folder / "a.gguf");
  tests::write_tiny_model(folder / "b.gguf");
  tests::write_tiny_model(folder / "c.gguf", {.seed = 2});
  tests::write_tiny_model(folder / "d.gguf", {.rope_base = 10001});
  const auto digest = [&](const char* name) {
    return model::open_checkpoint(folder / name)->digest();
  };
  CHECK(digest("a.gguf") == digest("b.gguf"));
  CHECK(digest("a.gguf") != digest("c.gguf"));
  CHECK(digest("a.gguf") != digest("d.gguf"));
}

TEST_CASE("a digest covers every byte of the file: two that differ in one weight have two") {
  tests::scratch_folder folder;
  tests::write_tiny_model(folder / "a.gguf");
  const auto opened = model::open_checkpoint(folder / "a.gguf");
  std::ifstream in{folder / "a.gguf", std::ios::binary};
  const std::string whole{std::istreambuf_iterator<char>{in}, {}};
  const auto digest_of = [&](const std::string& bytes) {
    const auto path = folder / "b.gguf";
    std::filesystem::remove(path);
    std::ofstream{path, std::ios::binary} << bytes;
    return model::open_checkpoint(path)->digest();
  };
  REQUIRE(digest_of(whole) == opened->digest());
  for (const auto& tensor : opened->tensors()) {
    if (tensor.data.empty()) continue;
    const std::string content{reinterpret_cast<const char*>(tensor.data.data()),
                              tensor.data.size()};
    const auto at = whole.find(content);
    REQUIRE(at != std::string::npos);
    for (const size_t place : {size_t{0}, content.size() / 3, content.size() - 1}) {
      auto changed = whole;
      changed[at + place] = static_cast<char>(changed[at + place] ^ 1);
      INFO(tensor.name << " byte " << place);
      CHECK(digest_of(changed) != opened->digest());
    }
  }
}

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
  refuses_key("extra", 9, array_of(4, model::gguf_limit::array_elements + 1));
  refuses_key("extra", 9, array_of(4, model::gguf_limit::array_elements));
  refuses_key("extra", 9, array_of(9, 1));
  refuses_key("extra", 9, array_of(13, 1));
  refuses_key("extra", 9, array_of(8, 1, gguf_writer::raw(~uint64_t{0})));
  refuses_key("extra", 9, array_of(8, 1u << 24));
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

TEST_CASE("a file of several types is read, each tensor in its own") {
  tests::scratch_folder folder;
  auto options = tests::tiny_model_of(tensor_type::q4_k);
  options.feed_forward = 288; // no whole super-blocks: what is done then is in other types
  options.type_of = tests::mixed_4_bit;
  tests::write_tiny_model(folder / "m.gguf", options);
  const auto opened = model::open_checkpoint(folder / "m.gguf");
  const auto type_of = [&](const char* name) { return opened->find(name)->type; };
  CHECK(type_of("token_embd.weight") == tensor_type::q6_k);
  CHECK(type_of("blk.0.attn_q.weight") == tensor_type::q4_k);
  CHECK(type_of("blk.2.attn_v.weight") == tensor_type::q6_k);
  CHECK(type_of("blk.1.attn_norm.weight") == tensor_type::f32);
  CHECK(type_of("blk.0.ffn_down.weight") == tensor_type::q8_0);
  CHECK(type_of("blk.1.ffn_down.weight") == tensor_type::q5_0);
}

TEST_CASE("a tensor of super-blocks that lacks its last byte is refused") {
  for (const auto& known : model::tensor_types) {
    if (known.block_elements != 256) continue;
    CAPTURE(known.name);
    tests::scratch_folder folder;
    gguf_writer writer;
    writer.set_text("general.architecture", "llama");
    writer.set_u32("llama.block_count", 1);
    writer.tensors.push_back({"blk.0.last", {512, 3}, known.gguf_number, {}, {}});
    const auto bytes = 3 * model::row_bytes(known.type, 512);
    writer.tensors[0].data.assign(bytes, 'x');
    const auto whole = writer.file(), cut = whole.substr(0, writer.header().size() + bytes);
    gguf_writer::write_file(folder / "m.gguf", cut);
    CHECK(model::open_checkpoint(folder / "m.gguf")->tensor("blk.0.last", 3, 512).data.size()
          == bytes);
    gguf_writer::write_file(folder / "n.gguf", cut.substr(0, cut.size() - 1));
    CHECK_THROWS_WITH_AS(model::open_checkpoint(folder / "n.gguf"),
                         doctest::Contains("(is the file cut off?)"), file_error);
  }
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
  refuses_key(prefix + "tokens", 9, array_of(0, 278, std::string(278, 'a')));
  refuses_key(prefix + "tokens", 9,
              array_of(0, model::vocabulary_max + 1, std::string(model::vocabulary_max + 1, 'a')));
  refuses_key(prefix + "tokens", 9, array_of(8, 1, gguf_writer::counted(std::string(4097, 'a'))));
  refuses_key(prefix + "token_type", 9, array_of(5, 1, gguf_writer::raw(int32_t{1})));
  refuses_key(prefix + "token_type", 9, array_of(0, 278, std::string(278, '\7')));
  refuses_key(prefix + "scores", 9, array_of(6, 1, gguf_writer::raw(1.f)));
  refuses_key(prefix + "merges", 9, array_of(0, 2, "ab"));
  refuses_key(prefix + "bos_token_id", 4, gguf_writer::raw(uint32_t{278}));
  refuses_key(prefix + "eos_token_id", 5, gguf_writer::raw(int32_t{-1}));
  refuses_key(prefix + "add_bos_token", 4, gguf_writer::raw(uint32_t{1}));
  refuses_key(prefix + "add_space_prefix", 4, gguf_writer::raw(uint32_t{1}));
  refuses_key(prefix + "pre", 4, gguf_writer::raw(uint32_t{1}));
}

TEST_CASE("what is put before text, and what markers take of it, is read from keys") {
  const tests::scratch_folder folder;
  const auto read = [&](const char* architecture, std::optional<bool> adds_space) {
    tests::tiny_model_options options;
    options.architecture = architecture;
    auto writer = tests::make_tiny_model(options);
    writer.set_text("tokenizer.ggml.model", "llama");
    if (adds_space) writer.set_bool("tokenizer.ggml.add_space_prefix", *adds_space);
    writer.write(folder / "tiny.gguf");
    return model::open_checkpoint(folder / "tiny.gguf")->tokenizer();
  };
  CHECK_FALSE(read("llama", {}).add_space_prefix);
  CHECK(read("llama", false).add_space_prefix == false);
  CHECK(read("phi3", true).add_space_prefix == true);
  CHECK(read("phi3", {}).take_space == std::vector<model::token_id>{1, 2}); // <|im_start|>, _end
  CHECK(read("llama", {}).take_space.empty());
}

TEST_CASE("names out of a file cannot write lines into a log") {
  tests::scratch_folder folder;
  gguf_writer writer = tests::make_tiny_model();
  writer.set("evil\n\x1b[2Jkey", 13, "");
  writer.write(folder / "m.gguf");
  try {
    model::open_checkpoint(folder / "m.gguf");
    FAIL("the file was accepted");
  } catch (const file_error& error) {
    CHECK(std::string(error.what()).find('\n') == std::string::npos);
    CHECK(std::string(error.what()).find('\x1b') == std::string::npos);
    CHECK(std::string(error.what()).find("evil\\x0A") != std::string::npos);
  }
}
