// The LLaMA family's hyperparameters as they come from files, good ones and hostile ones.
#include "model/architectures.hpp"
#include "model/load.hpp"
#include "tests/scratch_folder.hpp"
#include "tests/tiny_model.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <functional>
#include <limits>

using namespace lamella;
using model::file_error, model::load_model;

namespace {

struct fixture {
  tests::scratch_folder folder;
  std::filesystem::path path = folder / "tiny.gguf";

  model::loaded_model load(const tests::tiny_model_options& options = {}) {
    tests::write_tiny_model(path, options);
    return load_model(path);
  }
};

/// The bits that make a file hostile, and the field that the refusal must name.
struct hostile {
  const char* field;
  std::function<void(tests::gguf_writer&)> damage;
};

hostile number(const char* key, uint32_t value) {
  return {key, [=](tests::gguf_writer& w) { w.set_u32(std::string{"llama."} + key, value); }};
}
hostile real(const char* key, float value) {
  return {key, [=](tests::gguf_writer& w) { w.set_f32(std::string{"llama."} + key, value); }};
}
hostile without(const char* key) {
  return {key, [=](tests::gguf_writer& w) { w.remove(std::string{"llama."} + key); }};
}

} // namespace

TEST_CASE_FIXTURE(fixture, "the shapes of a tiny model are read from its file") {
  const auto loaded = load();
  const auto& s = loaded.program->spec;
  CHECK(s.architecture == "llama");
  CHECK(s.layers == 3);
  CHECK(s.hidden == 96);
  CHECK(s.feed_forward == 160);
  CHECK(s.heads == 6);
  CHECK(s.kv_heads == 3);
  CHECK(s.group() == 2);
  CHECK(s.head_dim == 16);
  CHECK(s.context_tokens == 512);
  CHECK(s.tied_output);
  CHECK(s.attention_scale() == 0.25f);
  CHECK(s.vocabulary == tests::make_tiny_vocabulary().tokens.size());
  CHECK(loaded.program->slices.size() == 4);
  CHECK(loaded.text != nullptr);
}

TEST_CASE_FIXTURE(
    fixture, "L-M05 sizes follow from shapes: (2 + 2/G) e d L on the wire, 2 e d L / G of KV") {
  tests::tiny_model_options options;
  options.layers = 7;
  const auto s = load(options).program->spec;
  for (uint32_t e : {2u, 4u}) {
    const auto d = s.heads * s.head_dim;
    CHECK(s.wire_bytes_per_row(e) == (2 + 2.0 / s.group()) * e * d * s.layers);
    CHECK(s.kv_bytes_per_token(e) == 2.0 * e * d * s.layers / s.group());
  }
}

TEST_CASE_FIXTURE(fixture, "a head of any width, and an output head of its own, are read") {
  tests::tiny_model_options options;
  options.heads = 7;
  options.kv_heads = 1;
  options.head_dim = 34;
  options.tied_embeddings = false;
  const auto loaded = load(options);
  CHECK(loaded.program->spec.head_dim == 34);
  CHECK(loaded.program->spec.group() == 7);
  CHECK_FALSE(loaded.program->spec.tied_output);
  CHECK(loaded.program->graph.weights.back().name == "output.weight");
}

TEST_CASE_FIXTURE(fixture,
                  "rotation frequencies fall geometrically, and LLaMA-3's divisors apply") {
  tests::tiny_model_options options;
  options.rope_base = 500000;
  const auto plain = load(options).program->spec.rope_frequencies;
  REQUIRE(plain.size() == 8);
  for (size_t i = 0; i < plain.size(); ++i)
    CHECK(plain[i] == doctest::Approx(std::pow(500000.0, -2.0 * i / 16)).epsilon(1e-12));
  options.rope_factors = true; // 1 for the first half, 8 for the second
  const auto scaled = load(options).program->spec.rope_frequencies;
  for (size_t i = 0; i < plain.size(); ++i)
    CHECK(scaled[i] == doctest::Approx(plain[i] / (i < 4 ? 1 : 8)).epsilon(1e-12));
}

TEST_CASE_FIXTURE(fixture,
                  "linear scaling divides every frequency, and part of a head may rotate") {
  auto writer = tests::make_tiny_model();
  writer.set_text("llama.rope.scaling.type", "linear");
  writer.set_f32("llama.rope.scaling.factor", 4);
  writer.set_u32("llama.rope.dimension_count", 6);
  writer.write(path);
  const auto frequencies = load_model(path).program->spec.rope_frequencies;
  REQUIRE(frequencies.size() == 3);
  CHECK(frequencies[0] == 0.25);
}

TEST_CASE_FIXTURE(fixture, "hostile hyperparameters are refused, and the refusal names the field") {
  const std::vector<hostile> all{
      number("block_count", 0),
      number("block_count", 1025),
      number("block_count", ~0u),
      number("embedding_length", 0),
      number("embedding_length", ~0u),
      number("feed_forward_length", 0),
      number("feed_forward_length", ~0u),
      number("attention.head_count", 0),
      number("attention.head_count", 1025),
      number("attention.head_count_kv", 0),
      number("attention.head_count_kv", 4),
      number("attention.head_count_kv", 7),
      number("attention.key_length", 0),
      number("attention.key_length", 1025),
      number("attention.value_length", 17),
      number("context_length", 0),
      number("context_length", ~0u),
      number("expert_count", 8),
      number("rope.dimension_count", 0),
      number("rope.dimension_count", 1),
      number("rope.dimension_count", 7),
      number("rope.dimension_count", 18),
      number("rope.dimension_count", ~0u),
      real("rope.freq_base", 0),
      real("rope.freq_base", -1),
      real("rope.freq_base", std::numeric_limits<float>::infinity()),
      real("rope.freq_base", std::numeric_limits<float>::quiet_NaN()),
      real("attention.layer_norm_rms_epsilon", 0),
      real("attention.layer_norm_rms_epsilon", -1e-5f),
      real("attention.layer_norm_rms_epsilon", std::numeric_limits<float>::quiet_NaN()),
      without("block_count"),
      without("embedding_length"),
      without("feed_forward_length"),
      without("attention.head_count"),
      without("context_length"),
      without("attention.layer_norm_rms_epsilon"),
      {"rope.scaling.type", [](auto& w) { w.set_text("llama.rope.scaling.type", "yarn"); }},
      {"rope.scaling.factor", [](auto& w) { w.set_text("llama.rope.scaling.type", "linear"); }},
      {"rope.scaling.factor",
       [](auto& w) {
         w.set_text("llama.rope.scaling.type", "linear");
         w.set_f32("llama.rope.scaling.factor", 0);
       }},
      {"general.architecture",
       [](auto& w) {
         w.set_text("general.architecture", "mamba");
         for (auto& key : w.keys)
           if (key.name.starts_with("llama.")) key.name.replace(0, 5, "mamba");
       }},
      {"token_embd.weight", [](auto& w) { w.named("token_embd.weight").name = "token.weight"; }},
      {"output_norm.weight", [](auto& w) { w.named("output_norm.weight").name = "other"; }},
      {"blk.1.ffn_up.weight", [](auto& w) { w.named("blk.1.ffn_up.weight").name = "other"; }},
      {"surplus",
       [](auto& w) {
         w.add_tensor("surplus", model::tensor_type::f32, 1, 1, std::vector<float>{1});
       }},
  };
  for (const auto& x : all) {
    auto writer = tests::make_tiny_model();
    x.damage(writer);
    writer.write(path);
    try {
      load_model(path);
      FAIL_CHECK("accepted a wrong " << std::string{x.field});
    } catch (const file_error& error) {
      INFO(std::string{x.field} << ": " << std::string{error.what()});
      CHECK(std::string{error.what()}.find(x.field) != std::string::npos);
      CHECK(std::string{error.what()}.find("tiny.gguf") != std::string::npos);
    }
  }
}

TEST_CASE_FIXTURE(fixture, "frequency divisors that are zero, not finite or too many are refused") {
  for (float bad : {0.f, -1.f, 1e7f, std::numeric_limits<float>::quiet_NaN()}) {
    auto writer = tests::make_tiny_model();
    std::vector<float> factors(8, 1.f);
    factors[7] = bad;
    writer.add_tensor("rope_freqs.weight", model::tensor_type::f32, 8, 1, factors);
    writer.write(path);
    CHECK_THROWS_AS(load_model(path), file_error);
  }
  auto writer = tests::make_tiny_model();
  writer.add_tensor("rope_freqs.weight", model::tensor_type::f32, 9, 1, std::vector<float>(9, 1.f));
  writer.write(path);
  CHECK_THROWS_AS(load_model(path), file_error);
}

TEST_CASE_FIXTURE(fixture, "a norm in a quantised type is refused before any weight is packed") {
  tests::tiny_model_options options;
  auto writer = tests::make_tiny_model(options);
  auto& norm = writer.named("blk.2.ffn_norm.weight");
  norm.type = tests::gguf_number(model::tensor_type::q8_0);
  norm.data = tests::pack(model::tensor_type::q8_0, std::vector<float>(96, 1.f));
  writer.write(path);
  CHECK_THROWS_WITH_AS(load_model(path), doctest::Contains("blk.2.ffn_norm.weight"), file_error);
}

TEST_CASE_FIXTURE(fixture, "a file that claims a thousand layers it does not have is refused") {
  auto writer = tests::make_tiny_model();
  writer.set_u32("llama.block_count", 1024);
  writer.write(path);
  CHECK_THROWS_WITH_AS(load_model(path), doctest::Contains("block_count"), file_error);
}

TEST_CASE("architectures are found by name, and the known ones can be listed") {
  CHECK(model::find_architecture("llama") == &model::llama_architecture());
  CHECK(model::find_architecture("Llama") == nullptr);
  CHECK(model::find_architecture("") == nullptr);
  CHECK(model::architecture_names() == "llama");
}
