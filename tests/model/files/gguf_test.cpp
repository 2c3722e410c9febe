// What a GGUF file says is taken over exactly.
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
             tests::gguf_array(4, 3, gguf_writer::raw(std::array<uint32_t, 3>{3, 2, 1})));
  writer.set("llama.a", 5, gguf_writer::raw(int32_t{5}));
  writer.set("llama.b", 5, gguf_writer::raw(int32_t{-5}));
  writer.set_f32("llama.c", std::numeric_limits<float>::quiet_NaN());
  writer.set("llama.d", 9, tests::gguf_array(6, 1, gguf_writer::raw(1.5f)));
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
