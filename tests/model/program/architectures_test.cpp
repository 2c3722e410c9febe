// The hyperparameters and tensors of architectures as they come from files.
#include "model/program/architectures.hpp"
#include "tests/model/program/architectures_fixture.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <numbers>
#include <set>
#include <tuple>

using namespace lamella;
using model::load_model;
using model::test::fixture;

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

TEST_CASE_FIXTURE(fixture, "a sliding window bounds the context, and one that is wider does not") {
  const std::tuple<uint32_t, uint32_t, const char*> cases[]{
      {0, 512, "the model was trained for"},
      {511, 511, "of the model's attention window"},
      {512, 512, "the model was trained for"},
      {100000, 512, "the model was trained for"}};
  for (const auto& [window, usable, bound] : cases) {
    CAPTURE(window);
    auto writer = tests::make_tiny_model();
    writer.set_u32("llama.attention.sliding_window", window);
    writer.write(path);
    const auto loaded = load_model(path);
    CHECK(loaded.program->spec.trained_tokens == 512);
    CHECK(loaded.program->spec.context_tokens == usable);
    CHECK(loaded.program->spec.context_bound() == bound);
  }
}

TEST_CASE_FIXTURE(fixture, "a bias of LLaMA's is in all layers or in none") {
  tests::tiny_model_options options;
  options.biased = {"attn_q", "ffn_down"};
  CHECK(load(options).program->spec.biased == options.biased);
  CHECK(load().program->spec.biased.empty());
  for (int layer : {0, 1}) {
    auto writer = tests::make_tiny_model();
    const auto name = "blk." + std::to_string(layer) + ".attn_q.bias";
    writer.add_tensor(name, model::tensor_type::f32, 96, 1, std::vector<float>(96, 1.f));
    writer.write(path);
    // The next layer has none; or the first has none, and this one is not expected.
    CHECK_THROWS_WITH_AS(load_model(path), doctest::Contains("blk.1.attn_q.bias"), file_error);
  }
}

TEST_CASE_FIXTURE(fixture,
                  "YaRN leaves fast pairs alone, slows the others, and sharpens attention") {
  tests::tiny_model_options options;
  options.head_dim = 64;
  options.rope_yarn = 4;
  options.context = 4096;
  const auto scaled = load(options).program->spec;
  options.rope_yarn = 0;
  const auto plain = load(options).program->spec;
  CHECK(plain.rope_magnitude == 1);
  CHECK(scaled.rope_magnitude == doctest::Approx(1 + 0.1 * std::log(4.0)));
  REQUIRE(scaled.rope_frequencies.size() == 32);
  double before = 1;
  for (size_t i = 0; i < 32; ++i) {
    const auto ratio = scaled.rope_frequencies[i] / plain.rope_frequencies[i];
    // Turns within the original context of 1024: more than 32, less than one, or between.
    const auto turns = 1024 * plain.rope_frequencies[i] / (2 * std::numbers::pi);
    if (turns > 40) CHECK(ratio == 1);
    if (turns < 0.7) CHECK(ratio == doctest::Approx(0.25));
    CHECK(ratio <= before);
    before = ratio;
  }
}

TEST_CASE_FIXTURE(fixture, "the usable context decides between short and long divisors") {
  tests::tiny_model_options options;
  options.architecture = "phi3";
  options.rope_long =
      true; // of an original context of 128, short to 1.02 and long to 1.9 at pair 1
  const auto ratio = [&](uint32_t window) {
    auto writer = tests::make_tiny_model(options);
    writer.set_u32("phi3.attention.sliding_window", window);
    writer.write(path);
    const auto frequencies = load_model(path).program->spec.rope_frequencies;
    return std::pow(10000.0, -2.0 / 16) / frequencies[1];
  };
  CHECK(ratio(0) == doctest::Approx(1.9));
  CHECK(ratio(129) == doctest::Approx(1.9));
  CHECK(ratio(128) == doctest::Approx(1.02));
}

TEST_CASE_FIXTURE(fixture, "every fourth layer of SmolLM3 rotates nothing") {
  tests::tiny_model_options options;
  options.architecture = "smollm3";
  options.layers = 9;
  const auto smollm3 = load(options);
  std::map<uint32_t, int> rotations; // by layer
  for (const auto& node : smollm3.program->graph.nodes)
    rotations[node.layer] += node.kind == model::op_kind::rope ? 1 : 0;
  for (uint32_t layer = 0; layer < 9; ++layer)
    CHECK(rotations[layer] == (layer == 3 || layer == 7 ? 0 : 2));
}

TEST_CASE_FIXTURE(fixture,
                  "the definition of each architecture uses the tensors that are its own") {
  const auto weights = [&](const char* architecture) {
    tests::tiny_model_options options;
    options.architecture = architecture;
    const auto loaded = load(options);
    std::set<std::string> names;
    for (const auto& x : loaded.program->graph.weights) names.insert(x.name);
    return names;
  };
  const auto llama = weights("llama");
  auto qwen2 = weights("qwen2"), qwen3 = weights("qwen3");
  for (int layer = 0; layer < 3; ++layer) {
    const auto blk = "blk." + std::to_string(layer) + ".";
    for (const char* name : {"attn_q.bias", "attn_k.bias", "attn_v.bias"})
      CHECK(qwen2.erase(blk + name) == 1);
    for (const char* name : {"attn_q_norm.weight", "attn_k_norm.weight"})
      CHECK(qwen3.erase(blk + name) == 1);
  }
  CHECK(qwen2 == llama);
  CHECK(qwen3 == llama);
}

TEST_CASE("architectures are found by name, and the known ones can be listed") {
  CHECK(model::find_architecture("llama") == &model::llama_architecture());
  CHECK(model::find_architecture("Llama") == nullptr);
  CHECK(model::find_architecture("") == nullptr);
  for (const char* name : {"llama", "qwen2", "qwen3", "smollm3", "granite", "olmo2", "phi3"}) {
    REQUIRE(model::find_architecture(name) != nullptr);
    CHECK(model::find_architecture(name)->name == name);
  }
  CHECK(model::architecture_names() == "llama, qwen2, qwen3, smollm3, granite, olmo2, phi3");
}
