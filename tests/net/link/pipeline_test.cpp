// A whole tiny model through slices, channels and shards, without actors: what one request gets
// does not depend on how the work was cut.
#include "tests/gpu/kernels/tile_twin.hpp"
#include "tests/pipeline_runs.hpp"

#include <doctest/doctest.h>

using namespace lamella;
using namespace lamella::test;
using rows = pipeline_rows;

namespace {

constexpr uint32_t length = 54;

/// The logits of each fast set beside those of the reference.
void check_fast_sets(const model::loaded_model& model, double tolerance) {
  const auto tokens = random_tokens(17, 8);
  pipeline reference{model, {.wire = gpu::half_type::f32, .kv = gpu::half_type::f32}};
  const auto expected = run_chunked(reference, tokens, 17, whole(17));
  for (const auto& row : expected)
    for (float x : row) REQUIRE(std::isfinite(x));
  for (const char* set : {"portable", "avx2", "avx512", "amx", "twin"}) {
    std::string reason;
    const auto* ops = gpu::test::find_set(set, &reason);
    if (ops == nullptr) continue; // told by the first test
    INFO(std::string{set});
    pipeline p{model, {.ops = ops, .wire = gpu::half_type::f32, .kv = gpu::half_type::f32}};
    const auto got = run_chunked(p, tokens, 17, whole(17));
    CHECK(difference(got, expected) < tolerance);
    CHECK(same_bytes(run_chunked(p, tokens, 1, whole(17)), got));
  }
}

} // namespace

TEST_CASE_FIXTURE(models, "L-M14 L-M15 decoding gives the same bytes as prefill, with any chunk") {
  const auto model = load();
  const auto tokens = random_tokens(length, 1);
  for (const char* set : {"reference", "portable", "auto", "twin"}) {
    std::string reason;
    const auto* ops = gpu::test::find_set(set, &reason);
    if (ops == nullptr) {
      MESSAGE("skipped: kernel set " << std::string{set} << ": " << reason);
      continue;
    }
    pipeline p{model, {.ops = ops}};
    const auto expected = run_chunked(p, tokens, length, whole(length));
    for (uint32_t chunk : {1u, 7u, 16u, 17u, 53u}) {
      CAPTURE(chunk);
      CHECK(same_bytes(run_chunked(p, tokens, chunk, whole(length, 100 * chunk % 900)), expected));
    }
  }
}

TEST_CASE_FIXTURE(models, "L-M23 one, two or three shards by head give the same bytes") {
  for (uint32_t kv_heads : {2u, 3u, 6u}) {
    tests::tiny_model_options options;
    options.kv_heads = kv_heads;
    const auto model = load(options);
    const auto tokens = random_tokens(length, kv_heads);
    pipeline alone{model, {}};
    const auto expected = run_chunked(alone, tokens, 17, whole(length));
    for (uint32_t shards : {2u, 3u, 6u}) {
      if (kv_heads % shards != 0) continue;
      CAPTURE(kv_heads);
      CAPTURE(shards);
      pipeline p{model, {.shards = shards}};
      CHECK(same_bytes(run_chunked(p, tokens, 17, whole(length)), expected));
    }
  }
}

TEST_CASE_FIXTURE(models, "L-M17 L-M21 replicas that run the slices in turn give the same bytes") {
  const auto model = load();
  const auto tokens = random_tokens(length, 5);
  pipeline alone{model, {}};
  const auto expected = run_chunked(alone, tokens, 17, whole(length));
  const auto sent_alone = alone.bytes_sent();
  const auto& spec = alone.spec();
  for (uint32_t replicas : {2u, 3u, 5u}) {
    CAPTURE(replicas);
    const pipeline_options turns{.replicas = replicas};
    auto by_head = turns, by_request = turns, guarded = turns;
    by_head.shards = guarded.shards = 3;
    by_request.shards = 2;
    by_request.by_request = true;
    guarded.parity_frame_bytes = 1 << 16;
    for (const auto& options : {turns, by_head, by_request, guarded}) {
      pipeline p{model, options};
      CHECK(same_bytes(run_chunked(p, tokens, 17, whole(length)), expected));
      CHECK(same_bytes(run_chunked(p, tokens, 1, whole(length, 500)), expected));
    }
    // L-M21: the context of each slice but the last goes to the next replica, in fp32.
    pipeline p{model, turns};
    run_chunked(p, tokens, 17, whole(length));
    CHECK(p.bytes_sent() == sent_alone + uint64_t{length % 17} * spec.layers * spec.hidden * 4);
  }
}

TEST_CASE_FIXTURE(models,
                  "V-M14 a request among others, of any lengths, gets the bytes it gets alone") {
  const auto model = load();
  pipeline p{model, {.shards = 3, .slots = 4096}};
  const std::vector<uint32_t> lengths{1, 7, 17, 54, 30, 16, 2, 33};
  std::vector<std::vector<uint32_t>> prompts;
  logits alone;
  for (size_t i = 0; i < lengths.size(); ++i) {
    prompts.push_back(random_tokens(lengths[i], 100 + i));
    alone.push_back(p.run({rows{prompts[i], 0, whole(lengths[i], 3000)}})[0]);
  }
  // All prefilled at once, then one more token each, decoded at once and alone.
  std::vector<rows> batch, next;
  uint32_t slot = 0;
  for (size_t i = 0; i < lengths.size(); ++i) {
    batch.push_back({prompts[i], 0, whole(lengths[i] + 1, slot)});
    next.push_back({{static_cast<uint32_t>(i)}, lengths[i], whole(lengths[i] + 1, slot)});
    slot += lengths[i] + 1;
  }
  CHECK(same_bytes(p.run(batch), alone));
  const auto together = p.run(next);
  for (size_t i = 0; i < next.size(); ++i) CHECK(same_bytes(p.run({next[i]}), {together[i]}));
}

TEST_CASE_FIXTURE(models,
                  "V-M08 mini-batches give the same bytes, of iterations of any sequences") {
  tests::tiny_model_options options; // for three ranks, too
  options.head_dim = 32;
  options.feed_forward = 192;
  const auto model = load(options);
  constexpr uint32_t sequences = 7, prompt = 11;
  std::vector<rows> prompts, next, beside;
  for (uint32_t i = 0; i < sequences; ++i) {
    const auto runs = whole(prompt + i + 2, 40 * i);
    prompts.push_back({random_tokens(prompt + i, 50 + i), 0, runs, false, i % 2});
    next.push_back({{i}, prompt + i, runs, false, i % 2});
    // Some sequences decode, one has a prompt: a shard's rows are divided only without it.
    beside.push_back({i == 2 ? random_tokens(3, 9) : std::vector<uint32_t>{i + 20},
                      i == 2 ? 0 : prompt + i + 1, i == 2 ? whole(3, 1000) : runs, false, i % 2});
  }
  const auto run = [&](const pipeline_options& o) {
    pipeline p{model, o};
    logits all;
    for (const auto* batch : {&prompts, &next, &beside})
      for (auto& row : p.run(*batch)) all.push_back(std::move(row));
    return all;
  };
  const auto expected = run({});
  pipeline_options by_head{.shards = 3}, by_request{.shards = 2, .by_request = true},
      turns{.shards = 3, .replicas = 2}, ranks{.ranks = 3}, guarded{.shards = 3};
  guarded.parity_frame_bytes = 1 << 16;
  for (auto o : {pipeline_options{}, by_head, by_request, turns, ranks, guarded})
    for (uint32_t parts : {2u, 3u, 8u}) {
      CAPTURE(parts);
      CAPTURE(o.shards);
      auto whole_batch = o;
      o.mini_batches = parts;
      if (o.ranks > 1)
        CHECK(same_bytes(run(o), run(whole_batch)));
      else
        CHECK(same_bytes(run(o), expected));
    }
}

TEST_CASE_FIXTURE(models, "V-M11 where the slots lie changes no byte") {
  const auto model = load();
  pipeline p{model, {}};
  const auto tokens = random_tokens(length, 3);
  const auto expected = run_chunked(p, tokens, 7, whole(length));
  for (uint32_t piece : {1u, 7u, 15u, 16u, 17u}) {
    CAPTURE(piece);
    CHECK(same_bytes(run_chunked(p, tokens, 7, scattered(200, length, piece)), expected));
  }
}

TEST_CASE_FIXTURE(models,
                  "V-M12 two sequences that share the slots of a prefix read the same values") {
  const auto model = load();
  pipeline p{model, {}};
  const auto prefix = random_tokens(17, 4);
  const auto expected = run_chunked(p, prefix, 17, whole(17));
  logits split, copied;
  for (uint32_t choice : {0u, 1u}) {
    const uint32_t token = 30 + choice;
    const std::vector<gpu::slot_run> shared{{0, 17}, {100 + choice * 7, 1}};
    split.push_back(p.run({rows{{token}, 17, shared}})[0]);
    auto all = prefix;
    all.push_back(token);
    copied.push_back(p.run({rows{all, 0, whole(18, 500)}})[0]);
  }
  CHECK(same_bytes(split, copied));
  CHECK_FALSE(same_bytes({split[0]}, {split[1]}));
}

TEST_CASE_FIXTURE(models, "running an iteration again, on the same slots, gives the same bytes") {
  const auto model = load();
  pipeline p{model, {}};
  const auto tokens = random_tokens(length, 5);
  const auto first = run_chunked(p, tokens, 16, whole(length));
  CHECK(same_bytes(run_chunked(p, tokens, 16, whole(length)), first));
  const rows last{{tokens.back()}, length - 1, whole(length)};
  CHECK(same_bytes(p.run({last}), {first.back()}));
}

TEST_CASE_FIXTURE(models, "the number of threads changes no byte") {
  const auto model = load();
  const auto tokens = random_tokens(length, 6);
  pipeline one{model, {.threads = 1}}, three{model, {.threads = 3}};
  CHECK(same_bytes(run_chunked(three, tokens, 17, whole(length)),
                   run_chunked(one, tokens, 17, whole(length))));
}

TEST_CASE_FIXTURE(models,
                  "L-M05 an iteration moves (2 + 2/G) e d L bytes per row, however many shards") {
  for (uint32_t kv_heads : {1u, 3u, 6u}) {
    tests::tiny_model_options options;
    options.kv_heads = kv_heads;
    options.layers = 7;
    const auto model = load(options);
    for (auto wire : {gpu::half_type::f16, gpu::half_type::f32})
      for (uint32_t shards : {1u, 3u}) {
        if (kv_heads % shards != 0) continue;
        for (uint32_t count : {1u, 17u}) {
          pipeline p{model, {.shards = shards, .wire = wire}};
          p.run({rows{random_tokens(count, 7), 0, whole(count)}});
          const auto element = static_cast<uint32_t>(gpu::bytes_of(wire));
          CHECK(p.bytes_sent() == count * p.spec().wire_bytes_per_row(element));
        }
      }
  }
}

TEST_CASE_FIXTURE(models, "weights of all types load, and the fast sets agree with the reference") {
  for (const auto& known : model::tensor_types) {
    CAPTURE(known.name);
    // Plain types differ by the order of fp32 sums only. Quantised ones also round activations to
    // 8 bits per 32 inputs, about 0.4 % of the block's largest, in each of some twenty products.
    check_fast_sets(load(tests::tiny_model_of(known.type)),
                    known.block_elements == 1 ? 1e-4 : 0.08);
  }
}

TEST_CASE_FIXTURE(models,
                  "a model whose weights are of several types runs as one of a single type") {
  auto options = tests::tiny_model_of(model::tensor_type::q4_k);
  options.type_of = tests::mixed_4_bit;
  SUBCASE("rows of whole super-blocks") {}
  SUBCASE("rows of none, which fall back to blocks of 32") { options.feed_forward = 288; }
  check_fast_sets(load(options), 0.08);
}

TEST_CASE_FIXTURE(models, "rounding to 16 bits on the wire and in the cache changes little") {
  const auto model = load();
  const auto tokens = random_tokens(length, 9);
  pipeline exact{model, {.wire = gpu::half_type::f32, .kv = gpu::half_type::f32}}, half{model, {}};
  const auto expected = run_chunked(exact, tokens, length, whole(length));
  const auto got = run_chunked(half, tokens, length, whole(length));
  // 11 bits of mantissa: 5e-4 for each rounding, three layers of them.
  CHECK(difference(got, expected) < 1e-2);
  CHECK_FALSE(same_bytes(got, expected)); // the roundings do happen
}

TEST_CASE_FIXTURE(models,
                  "KV in 8 and 4 bits: the same bytes however the work is cut, in every set") {
  const auto model = load();
  const auto tokens = random_tokens(length, 12);
  for (const char* set : {"reference", "portable", "auto", "twin"}) {
    std::string reason;
    const auto* ops = gpu::test::find_set(set, &reason);
    if (ops == nullptr) continue; // told by the first test
    CAPTURE(std::string{set});
    for (const auto type : {gpu::half_type::q8, gpu::half_type::q4}) {
      CAPTURE(static_cast<int>(type));
      const pipeline_options one{.ops = ops, .kv = type};
      pipeline alone{model, one};
      const auto expected = run_chunked(alone, tokens, length, whole(length));
      for (uint32_t chunk : {1u, 17u})
        CHECK(same_bytes(run_chunked(alone, tokens, chunk, scattered(200, length, 7)), expected));
      auto by_head = one, by_request = one, guarded = one;
      by_head.shards = guarded.shards = 3;
      by_request.shards = 2;
      by_request.by_request = true;
      guarded.parity_frame_bytes = 1 << 16;
      for (const auto& options : {by_head, by_request, guarded}) {
        pipeline p{model, options};
        CHECK(same_bytes(run_chunked(p, tokens, 17, whole(length)), expected));
      }
    }
  }
}

TEST_CASE_FIXTURE(models, "KV in 8 bits changes more than 16 bits do, KV in 4 bits yet more") {
  const auto model = load();
  const auto tokens = random_tokens(length, 9);
  pipeline half{model, {}}, eighth{model, {.kv = gpu::half_type::q8}},
      fourth{model, {.kv = gpu::half_type::q4}};
  const auto expected = run_chunked(half, tokens, length, whole(length));
  const auto got = run_chunked(eighth, tokens, length, whole(length));
  // An element is off by up to 1/254 of its head's largest.
  CHECK(difference(got, expected) < 5e-2);
  CHECK_FALSE(same_bytes(got, expected));
  // By up to 1/30 of its group's range.
  const auto coarse = difference(run_chunked(fourth, tokens, length, whole(length)), expected);
  CHECK(coarse < 0.5);
  CHECK(coarse > difference(got, expected));
}

TEST_CASE_FIXTURE(models, "matrices of a single row are matrices") {
  tests::tiny_model_options options;
  options.feed_forward = 1;
  const auto model = load(options);
  pipeline p{model, {}};
  const auto tokens = random_tokens(7, 10);
  const auto got = run_chunked(p, tokens, 7, whole(7));
  CHECK(same_bytes(run_chunked(p, tokens, 1, whole(7)), got));
  for (const auto& row : got)
    for (float x : row) REQUIRE(std::isfinite(x));
}

TEST_CASE_FIXTURE(
    models, "what is sampled greedily is the highest of the logits, and feeds the next iteration") {
  const auto model = load();
  pipeline p{model, {}};
  auto tokens = random_tokens(7, 11);
  for (int step = 0; step < 17; ++step) {
    gpu::sample_record record{};
    record.top_p = 1;
    const auto at = static_cast<uint32_t>(step == 0 ? 0 : tokens.size() - 1);
    const auto row =
        p.run({rows{part(tokens, at, tokens.size() - at), at, whole(64)}}, {record})[0];
    REQUIRE(p.sampled().size() == 1);
    const auto best = std::max_element(row.begin(), row.end()) - row.begin();
    CHECK(p.sampled()[0].token == static_cast<uint32_t>(best));
    tokens.push_back(p.sampled()[0].token);
  }
  // The same text at once: every token was the best after those before it.
  const auto all = run_chunked(p, tokens, 64, whole(64, 500));
  for (size_t i = 6; i + 1 < tokens.size(); ++i)
    CHECK(std::max_element(all[i].begin(), all[i].end()) - all[i].begin()
          == static_cast<ptrdiff_t>(tokens[i + 1]));
}
