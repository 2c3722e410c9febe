// Architectures other than LLaMA through slices, channels and shards: what one request gets does
// not depend on how the work was cut. Whether it is right is for tests/golden to say.
#include "tests/pipeline_runs.hpp"

#include <doctest/doctest.h>

using namespace lamella;
using namespace lamella::test;
using rows = pipeline_rows;

namespace {

constexpr uint32_t length = 54;

/// 6 heads on 3 KV heads; for three ranks, also in blocks of 32.
tests::tiny_model_options shape(const char* architecture) {
  tests::tiny_model_options x;
  x.architecture = architecture;
  x.head_dim = 32;
  x.feed_forward = 192;
  if (x.architecture == "smollm3") x.layers = 4; // the last of them does not rotate
  return x;
}

constexpr const char* families[]{"qwen2", "qwen3", "smollm3", "granite", "olmo2", "phi3"};

} // namespace

TEST_CASE_FIXTURE(models, "L-M14 L-M23 V-M07 families: no cut of the work changes a byte") {
  for (const char* family : families)
    for (const char* set : {"reference", "portable", "auto"}) {
      const auto* ops = gpu::find_operators(set, nullptr);
      REQUIRE(ops != nullptr);
      CAPTURE(family);
      CAPTURE(set);
      auto options = shape(family);
      if (ops->name != "reference") options.weights = model::tensor_type::q8_0;
      const auto model = load(options);
      CHECK(model.program->slices.size() == options.layers + 1);
      const auto tokens = random_tokens(length, 1);
      pipeline p{model, {.ops = ops}};
      const auto expected = run_chunked(p, tokens, length, whole(length));
      for (uint32_t chunk : {1u, 17u, 53u})
        CHECK(same_bytes(run_chunked(p, tokens, chunk, scattered(100, length, 7)), expected));
      pipeline by_head{model, {.ops = ops, .shards = 3}};
      CHECK(same_bytes(run_chunked(by_head, tokens, 17, whole(length)), expected));
      pipeline by_request{model, {.ops = ops, .shards = 2, .by_request = true}};
      CHECK(same_bytes(run_chunked(by_request, tokens, 17, whole(length)), expected));
      pipeline alone{model, {.ops = ops, .threads = 1}};
      CHECK(same_bytes(run_chunked(alone, tokens, 16, whole(length)), expected));
    }
}

TEST_CASE_FIXTURE(models, "V-M14 families: a request among others gets the bytes it gets alone") {
  for (const char* family : families) {
    CAPTURE(family);
    const auto model = load(shape(family));
    pipeline p{model, {.ops = gpu::find_operators("auto", nullptr), .shards = 3, .slots = 4096}};
    std::vector<rows> batch;
    logits alone;
    uint32_t slot = 0;
    for (uint32_t count : {1u, 7u, 17u, 54u, 30u, 2u}) {
      const auto prompt = random_tokens(count, 100 + count);
      alone.push_back(p.run({rows{prompt, 0, whole(count, 3000)}})[0]);
      batch.push_back({prompt, 0, whole(count, slot)});
      slot += count;
    }
    CHECK(same_bytes(p.run(batch), alone));
  }
}

TEST_CASE_FIXTURE(models, "families: the fast sets agree with the reference, and ranks with one") {
  for (const char* family : families) {
    CAPTURE(family);
    const auto model = load(shape(family));
    const auto tokens = random_tokens(17, 2);
    constexpr auto f32 = gpu::half_type::f32;
    pipeline reference{model, {.wire = f32, .kv = f32}};
    const auto expected = run_chunked(reference, tokens, 17, whole(17));
    for (const char* set : {"portable", "avx2", "avx512"}) {
      const auto* ops = gpu::find_operators(set, nullptr);
      if (ops == nullptr) continue;
      INFO(std::string{set});
      pipeline fast{model, {.ops = ops, .wire = f32, .kv = f32}};
      CHECK(difference(run_chunked(fast, tokens, 17, whole(17)), expected) < 1e-4);
    }
    if (std::string_view{family} == "olmo2") continue; // of one rank
    pipeline three{model, {.ranks = 3, .wire = f32, .kv = f32}};
    const auto found = run_chunked(three, tokens, 17, whole(17));
    CHECK(difference(found, expected) < 1e-5); // the order of sums
    CHECK(same_bytes(run_chunked(three, tokens, 1, whole(17, 100)), found));
  }
}

// Biases of sums are added once, not once per rank.
TEST_CASE_FIXTURE(models,
                  "L-M03 every product of LLaMA may have a bias, on one rank and on three") {
  auto options = shape("llama");
  options.biased = {"attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down"};
  const auto biased = load(options);
  const auto tokens = random_tokens(17, 3);
  constexpr auto f32 = gpu::half_type::f32;
  pipeline one{biased, {.wire = f32, .kv = f32}},
      three{biased, {.ranks = 3, .wire = f32, .kv = f32}};
  const auto expected = run_chunked(one, tokens, 17, whole(17));
  CHECK(difference(run_chunked(three, tokens, 17, whole(17)), expected) < 1e-5);
  options.biased = {};
  pipeline plain{load(options), {.wire = f32, .kv = f32}};
  CHECK(difference(run_chunked(plain, tokens, 17, whole(17)), expected) > 1e-2);
}
