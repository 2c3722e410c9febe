// A replica of several ranks (L-M03): a whole tiny model, without actors.
#include "tests/pipeline_runs.hpp"

#include <doctest/doctest.h>

using namespace lamella;
using namespace lamella::test;
using rows = pipeline_rows;

namespace {

constexpr uint32_t length = 41;

/// 12 heads on 6 KV heads: for 1, 2, 3 and 6 ranks, also in blocks of 32.
tests::tiny_model_options even() {
  tests::tiny_model_options x;
  x.embedding = 192;
  x.heads = 12;
  x.kv_heads = 6;
  x.head_dim = 16;
  x.feed_forward = 192;
  return x;
}

} // namespace

TEST_CASE_FIXTURE(models, "L-M03 several ranks compute what one does") {
  for (auto type : {model::tensor_type::f32, model::tensor_type::q8_0, model::tensor_type::q4_1}) {
    CAPTURE(to_string(type));
    auto options = even();
    options.weights = type;
    const auto model = load(options);
    const auto tokens = random_tokens(length, 5);
    for (const char* set : {"reference", "auto"}) {
      std::string reason;
      const auto* ops = gpu::find_operators(set, &reason);
      REQUIRE(ops != nullptr);
      pipeline alone{model, {.ops = ops}};
      const auto expected = run_chunked(alone, tokens, 17, whole(length));
      for (uint32_t ranks : {2u, 3u, 6u}) {
        CAPTURE(ranks);
        pipeline p{model, {.ops = ops, .ranks = ranks}};
        const auto found = run_chunked(p, tokens, 17, whole(length));
        // Sums are cut elsewhere, and what they change is rounded to 16 bits on the wire.
        CHECK(difference(found, expected) < 2e-2);
        CHECK(difference(found, expected) > 0);
      }
    }
  }
}

TEST_CASE_FIXTURE(models, "L-M03 ranks share weights of super-blocks by whole ones") {
  auto options = tests::tiny_model_of(model::tensor_type::q4_k);
  options.type_of = tests::mixed_4_bit;
  options.heads = 16;
  options.feed_forward = 512;
  const auto model = load(options);
  const auto tokens = random_tokens(length, 5);
  for (const char* set : {"reference", "auto"}) {
    std::string reason;
    const auto* ops = gpu::find_operators(set, &reason);
    REQUIRE(ops != nullptr);
    pipeline alone{model, {.ops = ops}}, two{model, {.ops = ops, .ranks = 2}};
    const auto expected = run_chunked(alone, tokens, 17, whole(length));
    const auto found = run_chunked(two, tokens, 17, whole(length));
    CHECK(difference(found, expected) < 2e-2); // as above
    CHECK(same_bytes(run_chunked(two, tokens, 1, whole(length)), found));
  }
}

TEST_CASE_FIXTURE(models, "L-M03 with f32 on the wire several ranks differ by the order of sums") {
  const auto model = load(even());
  const auto tokens = random_tokens(length, 6);
  const pipeline_options wide{.wire = gpu::half_type::f32, .kv = gpu::half_type::f32};
  auto options = wide;
  pipeline alone{model, options};
  const auto expected = run_chunked(alone, tokens, 8, whole(length));
  for (uint32_t ranks : {2u, 6u}) {
    options.ranks = ranks;
    pipeline p{model, options};
    CHECK(difference(run_chunked(p, tokens, 8, whole(length)), expected) < 1e-5);
  }
}

TEST_CASE_FIXTURE(models, "L-M03 with several ranks no cut of the work changes a byte") {
  for (auto type : {model::tensor_type::f32, model::tensor_type::q4_0}) {
    auto options = even();
    options.weights = type;
    const auto model = load(options);
    const auto tokens = random_tokens(length, 7);
    for (uint32_t ranks : {2u, 3u}) {
      CAPTURE(ranks);
      std::string reason;
      const auto* ops = gpu::find_operators("auto", &reason);
      pipeline p{model, {.ops = ops, .ranks = ranks, .slots = 4096}};
      const auto expected = run_chunked(p, tokens, length, whole(length));
      for (uint32_t chunk : {1u, 16u, 17u})
        CHECK(same_bytes(run_chunked(p, tokens, chunk, whole(length, 200 * chunk)), expected));
      // Shards by head, whose borders are not those of the ranks, and by request.
      for (uint32_t shards : {2u, 3u, 6u}) {
        pipeline by_head{model, {.ops = ops, .shards = shards, .ranks = ranks}};
        CHECK(same_bytes(run_chunked(by_head, tokens, 17, whole(length)), expected));
      }
      pipeline by_request{model, {.ops = ops, .shards = 2, .ranks = ranks, .by_request = true}};
      CHECK(same_bytes(run_chunked(by_request, tokens, 17, whole(length)), expected));
      pipeline threads{model, {.ops = ops, .threads = 1, .ranks = ranks}};
      CHECK(same_bytes(run_chunked(threads, tokens, 17, whole(length)), expected));
    }
  }
}

TEST_CASE_FIXTURE(models, "L-M03 with several ranks a request gets the bytes it gets alone") {
  const auto model = load(even());
  pipeline p{model, {.shards = 2, .ranks = 2, .slots = 4096}};
  const std::vector<uint32_t> lengths{1, 7, 17, 30, 16, 2};
  std::vector<rows> batch;
  logits alone;
  uint32_t slot = 0;
  for (size_t i = 0; i < lengths.size(); ++i) {
    const auto prompt = random_tokens(lengths[i], 100 + i);
    alone.push_back(p.run({rows{prompt, 0, whole(lengths[i], 3000)}})[0]);
    batch.push_back({prompt, 0, whole(lengths[i], slot)});
    slot += lengths[i];
  }
  CHECK(same_bytes(p.run(batch), alone));
}

TEST_CASE_FIXTURE(models, "L-M03 two sums of [rows, d] per layer and rank, and nothing else") {
  const auto model = load(even());
  for (uint32_t ranks : {2u, 3u}) {
    pipeline p{model, {.ranks = ranks}};
    const auto& spec = p.spec();
    uint64_t before = 0;
    for (uint32_t count : {1u, 17u}) {
      p.run({rows{random_tokens(count, 1), 0, whole(count)}});
      const auto bytes = uint64_t{2} * spec.layers * count * spec.hidden * sizeof(float);
      for (uint32_t r = 0; r < ranks; ++r)
        CHECK(p.sum_bytes_sent(r) == before + (ranks - 1) * bytes);
      before = p.sum_bytes_sent(0);
      // What goes to the attention pool and back does not depend on the ranks (L-M05).
      CHECK(p.bytes_sent() == count * spec.wire_bytes_per_row(2));
    }
  }
}
