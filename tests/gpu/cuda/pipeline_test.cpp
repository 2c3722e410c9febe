// A whole tiny model with CUDA devices as replica, as shards, and as both.
#include "gpu/cuda_module.hpp"
#include "tests/gpu/runners/parity_runs.hpp"

#include <doctest/doctest.h>

#include <algorithm>

using namespace lamella;
using namespace lamella::test;
using rows = pipeline_rows;

namespace {

constexpr uint32_t length = 54;

/// True if there is a device; else says so.
bool device_there() {
  std::string reason;
  const auto* module = gpu::find_cuda_module(&reason);
  if (module != nullptr && module->count(&reason) > 0) return true;
  MESSAGE("skipped: no CUDA device (" << reason << ")");
  return false;
}

std::unique_ptr<gpu::device> cuda() { return gpu::open_cuda_device(0); }

tests::tiny_model_options shape(model::tensor_type type) {
  auto o = tests::tiny_model_of(type);
  o.head_dim = 64;
  o.heads = model::block_elements(type) == 256 ? 8 : 6; // whole blocks
  o.kv_heads = o.heads / 2;
  return o;
}

pipeline_options both() {
  pipeline_options o;
  o.replica_device = o.shard_device = cuda;
  return o;
}

size_t best_of(const std::vector<float>& x) {
  return static_cast<size_t>(std::max_element(x.begin(), x.end()) - x.begin());
}

} // namespace

TEST_CASE_FIXTURE(models, "a CUDA replica with CUDA shards gives the reference's logits") {
  if (!device_there()) return;
  for (const auto& known : model::tensor_types) {
    const auto type = known.type;
    CAPTURE(std::string{model::to_string(type)});
    const auto model = load(shape(type));
    const auto tokens = random_tokens(length, 1);
    pipeline reference{model, {}};
    const auto expected = run_chunked(reference, tokens, 17, whole(length));
    pipeline p{model, both()};
    // Activations are rounded to 16 bits before each product: 2^-11 of f16, 2^-8 of bf16 each.
    const auto limit = type == model::tensor_type::bf16 ? 3e-2 : 4e-3;
    CHECK(difference(run_chunked(p, tokens, 17, whole(length)), expected) < limit);
    CHECK(difference(run_chunked(p, tokens, 1, scattered(300, length, 16)), expected) < limit);
  }
}

TEST_CASE_FIXTURE(models, "L-M14 L-M15 decoding on a CUDA device gives the same bytes as prefill") {
  if (!device_there()) return;
  const auto model = load(shape(model::tensor_type::q8_0));
  const auto tokens = random_tokens(length, 2);
  pipeline p{model, both()};
  const auto expected = run_chunked(p, tokens, length, whole(length));
  for (uint32_t chunk : {1u, 7u, 16u, 17u, 53u}) {
    CAPTURE(chunk);
    CHECK(same_bytes(run_chunked(p, tokens, chunk, scattered(100 * chunk % 900, length, 16)),
                     expected));
  }
}

TEST_CASE_FIXTURE(models, "L-M23 shards by head on CUDA devices give the same bytes") {
  if (!device_there()) return;
  const auto model = load(shape(model::tensor_type::f16));
  const auto tokens = random_tokens(length, 3);
  pipeline alone{model, both()};
  const auto expected = run_chunked(alone, tokens, 17, whole(length));
  auto o = both();
  o.shards = 3;
  pipeline three{model, o};
  CHECK(same_bytes(run_chunked(three, tokens, 17, whole(length)), expected));
}

TEST_CASE_FIXTURE(models, "a sequence has the same bytes in a batch of CUDA rows as alone") {
  if (!device_there()) return;
  const auto model = load(shape(model::tensor_type::q4_1));
  std::vector<std::vector<uint32_t>> tokens;
  std::vector<logits> alone;
  for (uint32_t i = 0; i < 7; ++i) {
    tokens.push_back(random_tokens(20 + i, 10 + i));
    pipeline p{model, both()};
    alone.push_back(run_chunked(p, tokens[i], 64, whole(64)));
  }
  pipeline p{model, both()};
  std::vector<rows> batch;
  for (uint32_t i = 0; i < 7; ++i) batch.push_back({tokens[i], 0, whole(64, 64 * i), true});
  const auto together = p.run(batch);
  size_t at = 0;
  for (uint32_t i = 0; i < 7; ++i)
    for (const auto& row : alone[i]) {
      CAPTURE(i);
      REQUIRE(same_bytes({together[at++]}, {row}));
    }
}

TEST_CASE_FIXTURE(models, "L-M34 a CUDA replica works with shards on the host, and the reverse") {
  if (!device_there()) return;
  const auto model = load(shape(model::tensor_type::f16));
  const auto tokens = random_tokens(length, 4);
  pipeline reference{model, {}};
  const auto expected = run_chunked(reference, tokens, 17, whole(length));
  for (bool replica : {true, false}) {
    CAPTURE(replica);
    pipeline_options o;
    (replica ? o.replica_device : o.shard_device) = cuda;
    o.shards = 3;
    pipeline mixed{model, o};
    CHECK(difference(run_chunked(mixed, tokens, 17, whole(length)), expected) < 4e-3);
    CHECK(difference(run_chunked(mixed, tokens, 1, whole(length, 100)), expected) < 4e-3);
  }
}

TEST_CASE_FIXTURE(models, "a CUDA replica samples, and feeds its own token to the next iteration") {
  if (!device_there()) return;
  const auto model = load(shape(model::tensor_type::f16));
  const auto prompt = random_tokens(17, 5);
  pipeline p{model, both()};
  gpu::sample_record greedy{0, 42, 0, 0, 0, 0, 1, 0, 6, 0, 0};
  auto last = p.run({rows{prompt, 0, whole(64)}}, {greedy});
  for (uint32_t i = 0; i < 20; ++i) {
    CAPTURE(i);
    REQUIRE(p.sampled().size() == 1);
    const auto drawn = p.sampled().front();
    CHECK(drawn.finite);
    CHECK(drawn.token == best_of(last.front()));
    REQUIRE(drawn.top.size() == 5);
    CHECK(drawn.top.front().token == drawn.token);
    // What was told and what is in device memory are one token. The run that is told samples
    // nothing, so the next one that takes its own comes last.
    const auto again = p.run({rows{{drawn.token}, 17 + i, whole(64)}});
    greedy.draw = i + 1;
    last = p.run({rows{{gpu::take_sampled}, 17 + i, whole(64)}}, {greedy});
    CHECK(same_bytes(again, last));
  }
}

// Both ranks may be on one device: what they say to each other is the same.
TEST_CASE_FIXTURE(models,
                  "L-M26 A6 parity of CUDA devices is sent, stored, checked and brings a member "
                  "back") {
  if (!device_there()) return;
  const auto model = load(shape(model::tensor_type::f16));
  const auto tokens = random_tokens(length, 6);
  auto o = both();
  o.shards = 3;
  o.slots = 128;
  o.parity_frame_bytes = 1 << 20;
  SUBCASE("f16") {}
  SUBCASE("bf16") { o.wire = o.kv = gpu::half_type::bf16; }
  SUBCASE("q8") { o.kv = gpu::half_type::q8; }
  pipeline p{model, o};
  run_chunked(p, tokens, 7, scattered(3, length + 1, 4));
  p.run({rows{{7}, length, scattered(3, length + 1, 4)}});
  CHECK(unprotected(p, 3) == 0);
  CHECK(found_wrong(p, 4, 90).empty());
  const auto spare = cuda();
  for (uint32_t lost = 0; lost <= 3; ++lost) CHECK(comes_back(p, 4, lost, 90, *spare));
}

TEST_CASE_FIXTURE(models, "L-M03 ranks on CUDA devices: no cut of the work changes a byte") {
  if (!device_there()) return;
  auto options = shape(model::tensor_type::q8_0);
  options.feed_forward = 192;
  const auto model = load(options);
  const auto tokens = random_tokens(length, 6);
  auto o = both();
  o.ranks = 3;
  pipeline_options host;
  host.ranks = 3;
  pipeline reference{model, host}, p{model, o};
  const auto found = run_chunked(p, tokens, 17, whole(length));
  CHECK(difference(found, run_chunked(reference, tokens, 17, whole(length))) < 4e-3);
  CHECK(same_bytes(run_chunked(p, tokens, 1, whole(length, 100)), found));
}
