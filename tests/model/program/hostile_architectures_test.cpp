// Hostile hyperparameters and missing tensors are refused, and the error names the field.
#include "model/program/architectures.hpp"
#include "tests/model/program/architectures_fixture.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <vector>

using namespace lamella;
using model::load_model;
using model::test::fixture;

namespace {

/// The bits that make a file hostile, and the field that the refusal must name.
struct hostile {
  const char* field;
  std::function<void(tests::gguf_writer&)> damage;
};

/// A key of the file's architecture.
std::string of_file(const tests::gguf_writer& w, const char* key) {
  return w.keys.at(0).bytes.substr(sizeof(uint64_t)) + "." + key;
}

hostile number(const char* key, uint32_t value) {
  return {key, [=](tests::gguf_writer& w) { w.set_u32(of_file(w, key), value); }};
}
hostile real(const char* key, float value) {
  return {key, [=](tests::gguf_writer& w) { w.set_f32(of_file(w, key), value); }};
}
hostile without(const char* key) {
  return {key, [=](tests::gguf_writer& w) { w.remove(of_file(w, key)); }};
}

/// What all architectures refuse.
std::vector<hostile> hostile_decoders() {
  return {
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
      number("attention.sliding_window", ~0u),
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
      {"rope.scaling.type", [](auto& w) { w.set_text(of_file(w, "rope.scaling.type"), "ntk"); }},
      real("rope.scaling.attn_factor", 0),
      real("rope.scaling.attn_factor", std::numeric_limits<float>::infinity()),
      {"rope.scaling.factor", [](auto& w) { w.set_text(of_file(w, "rope.scaling.type"), "yarn"); }},
      {"rope.scaling.factor",
       [](auto& w) {
         w.set_text(of_file(w, "rope.scaling.type"), "yarn");
         w.set_f32(of_file(w, "rope.scaling.factor"), 0.5f);
       }},
      {"rope.scaling.original_context_length",
       [](auto& w) {
         w.set_text(of_file(w, "rope.scaling.type"), "yarn");
         w.set_f32(of_file(w, "rope.scaling.factor"), 4);
         w.set_u32(of_file(w, "rope.scaling.original_context_length"), 0);
       }},
      {"rope.freq_base",
       [](auto& w) {
         w.set_text(of_file(w, "rope.scaling.type"), "yarn");
         w.set_f32(of_file(w, "rope.scaling.factor"), 4);
         w.set_f32(of_file(w, "rope.freq_base"), 1);
       }},
      {"rope_factors_short.weight",
       [](auto& w) { w.set_text(of_file(w, "rope.scaling.type"), "longrope"); }},
      {"rope.scaling.factor",
       [](auto& w) { w.set_text(of_file(w, "rope.scaling.type"), "linear"); }},
      {"rope.scaling.factor",
       [](auto& w) {
         w.set_text(of_file(w, "rope.scaling.type"), "linear");
         w.set_f32(of_file(w, "rope.scaling.factor"), 0);
       }},
      {"token_embd.weight", [](auto& w) { w.named("token_embd.weight").name = "token.weight"; }},
      {"output_norm.weight", [](auto& w) { w.named("output_norm.weight").name = "other"; }},
      {"blk.1.ffn_up.weight", [](auto& w) { w.named("blk.1.ffn_up.weight").name = "other"; }},
      {"surplus",
       [](auto& w) {
         w.add_tensor("surplus", model::tensor_type::f32, 1, 1, std::vector<float>{1});
       }},
  };
}

/// Nothing, or how a damaged model of this architecture was not refused as it should be.
void refuses(const std::string& architecture, const hostile& x, const std::filesystem::path& path) {
  tests::tiny_model_options options;
  options.architecture = architecture;
  auto writer = tests::make_tiny_model(options);
  x.damage(writer);
  writer.write(path);
  INFO(architecture << " with a wrong " << std::string{x.field});
  try {
    load_model(path);
    FAIL_CHECK("was accepted");
  } catch (const file_error& error) {
    INFO(std::string{error.what()});
    CHECK(std::string{error.what()}.find(x.field) != std::string::npos);
    CHECK(std::string{error.what()}.find("tiny.gguf") != std::string::npos);
  }
}

} // namespace

TEST_CASE_FIXTURE(fixture, "hostile hyperparameters are refused, and the refusal names the field") {
  for (const char* architecture :
       {"llama", "qwen2", "qwen3", "smollm3", "granite", "olmo2", "phi3"})
    for (const auto& x : hostile_decoders()) refuses(architecture, x, path);
  refuses("llama",
          {"general.architecture",
           [](auto& w) {
             w.set_text("general.architecture", "mamba");
             for (auto& key : w.keys)
               if (key.name.starts_with("llama.")) key.name.replace(0, 5, "mamba");
           }},
          path);
}

TEST_CASE_FIXTURE(fixture,
                  "Phi-3's weights are rows of its file's tensors, none left and none twice") {
  tests::tiny_model_options options;
  options.architecture = "phi3";
  const auto phi3 = load(options);
  std::map<std::string, uint32_t> next; // row, by tensor
  for (const auto& x : phi3.program->graph.weights)
    if (x.rows_in_file != 0) {
      CHECK(x.first_row == next[x.name]);
      next[x.name] += x.outputs;
      if (next[x.name] == x.rows_in_file) CHECK(phi3.tensor(x).rows == x.rows_in_file);
    }
  CHECK(next.size() == 2 * 3);
  CHECK(next["blk.0.attn_qkv.weight"] == 96 + 48 + 48);
  CHECK(next["blk.2.ffn_up.weight"] == 2 * 160);
  CHECK(to_text(*phi3.program).find("blk.0.attn_qkv.weight[96:144]") != std::string::npos);
  refuses("phi3",
          {"blk.1.attn_qkv.weight",
           [](auto& w) {
             w.named("blk.1.attn_qkv.weight").dimensions = {96, 96};
           }},
          path);
}

TEST_CASE_FIXTURE(fixture, "Granite's factors are read, and hostile ones refused") {
  tests::tiny_model_options options;
  options.architecture = "granite";
  const auto granite = load(options);
  const auto& s = granite.program->spec;
  CHECK(s.attention_scale() == 0.3f);
  CHECK(s.embedding_scale == 3);
  CHECK(s.residual_scale == 0.7f);
  CHECK(s.logit_scale == doctest::Approx(0.4));
  auto writer = tests::make_tiny_model(options);
  for (const char* key : {"attention.scale", "embedding_scale", "residual_scale", "logit_scale"}) {
    writer.remove(std::string{"granite."} + key);
    for (float bad : {0.f, -1.f, 1e7f, std::numeric_limits<float>::quiet_NaN()})
      refuses("granite", real(key, bad), path);
  }
  writer.write(path);
  const auto plain = load_model(path);
  CHECK(plain.program->spec.attention_scale() == 0.25f);
  CHECK(plain.program->spec.logit_scale == 1);
}

TEST_CASE_FIXTURE(fixture, "OLMo's windows beside scaled rotations are refused") {
  refuses("olmo2",
          {"rope.scaling.type",
           [](auto& w) {
             w.set_u32("olmo2.attention.sliding_window", 100);
             w.set_text("olmo2.rope.scaling.type", "yarn");
             w.set_f32("olmo2.rope.scaling.factor", 8);
           }},
          path);
}

TEST_CASE_FIXTURE(fixture, "tensors that an architecture needs are missed by name") {
  const auto without_tensor = [](const char* name) {
    return hostile{name, [=](tests::gguf_writer& w) {
                     std::erase_if(w.tensors, [&](const auto& x) { return x.name == name; });
                   }};
  };
  const auto surplus = [](const char* name, uint64_t width) {
    return hostile{name, [=](tests::gguf_writer& w) {
                     w.add_tensor(name, model::tensor_type::f32, width, 1,
                                  std::vector<float>(width, 1.f));
                   }};
  };
  for (const char* name : {"blk.0.attn_q.bias", "blk.1.attn_k.bias", "blk.2.attn_v.bias"}) {
    refuses("qwen2", without_tensor(name), path);
    refuses("qwen3", surplus(name, name[11] == 'q' ? 96 : 48), path);
  }
  for (const char* name : {"blk.0.attn_q_norm.weight", "blk.2.attn_k_norm.weight"}) {
    refuses("qwen3", without_tensor(name), path);
    refuses("qwen2", surplus(name, 16), path);
  }
  // Of the wrong width, and in a type that vectors are not read in.
  refuses("qwen3",
          {"blk.1.attn_q_norm.weight",
           [](auto& w) {
             w.named("blk.1.attn_q_norm.weight").dimensions = {8, 2};
           }},
          path);
  refuses("qwen2",
          {"blk.1.attn_v.bias",
           [](auto& w) {
             w.named("blk.1.attn_v.bias").dimensions = {24, 2};
           }},
          path);
  refuses("qwen2",
          {"blk.1.attn_q.bias",
           [](auto& w) {
             auto& bias = w.named("blk.1.attn_q.bias");
             bias.type = tests::gguf_number(model::tensor_type::q8_0);
             bias.data = tests::pack(model::tensor_type::q8_0, std::vector<float>(96, 1.f));
           }},
          path);
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
