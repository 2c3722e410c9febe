// `lamella bench attention` on small caches: every type gets its rows, and what cannot be is told.
#include "cli/bench/parts/bench_attention.hpp"

#include <doctest/doctest.h>

#include <stdexcept>

using namespace lamella;
using namespace lamella::cli;
using gpu::half_type;

TEST_CASE("attention over caches of all types is measured, in the order of shapes and types") {
  bench_attention_options options;
  options.caches = {half_type::f32, half_type::f16, half_type::bf16, half_type::q8, half_type::q4};
  options.batches = {2};
  options.contexts = {3, 40};
  options.kv_heads = 64;
  options.cache_bytes = 8 << 20; // some layers
  options.group = 2;
  options.dim = 64;
  options.repeats = 1;
  for (uint32_t queries : {1u, 5u}) {
    options.queries = queries;
    std::string reason;
    const auto* ops = gpu::find_operators("auto", &reason);
    REQUIRE(ops != nullptr);
    const auto rows = measure_attention(options, *ops, 2);
    REQUIRE(rows.size() == 10);
    for (size_t i = 0; i < rows.size(); ++i) {
      CHECK(rows[i].cache == options.caches[i % 5]);
      CHECK(rows[i].batch == 2);
      CHECK(rows[i].context == options.contexts[i / 5]);
      CHECK(rows[i].best_us > 0);
      CHECK(rows[i].median_us >= rows[i].best_us);
    }
    // Two of K and V, so many heads of so many numbers, in two sequences.
    CHECK(rows[6].bytes == 2.0 * 2 * 40 * 64 * 64 * 2);
    CHECK(rows[6].operations
          == 4.0 * 2 * 64 * 2 * 64 * (queries * 40 + queries * (queries + 1) / 2));
  }
}

TEST_CASE("a set whose attention is wrong is told") {
  auto wrong = gpu::reference_operators();
  wrong.attend_previous = [](const gpu::attention_args& x, gpu::kernel_context on) {
    gpu::reference_operators().attend_previous(x, on);
    const auto floats = gpu::reference_operators().attention_state_floats(x);
    for (size_t i = 0; i < floats; i += 3) x.state[i] *= 1.5f;
  };
  bench_attention_options options;
  options.batches = options.contexts = {1};
  CHECK_THROWS_WITH_AS(measure_attention(options, wrong, 1),
                       "attention over f16 gives wrong results", std::runtime_error);
}

TEST_CASE("a cache beyond 2 GB is refused with what it would take") {
  bench_attention_options options;
  options.caches = {half_type::f16};
  options.batches = {4096};
  options.contexts = {1'000'000};
  std::string reason;
  const auto* ops = gpu::find_operators("auto", &reason);
  REQUIRE(ops != nullptr);
  CHECK_THROWS_WITH_AS(
      measure_attention(options, *ops, 1),
      "a batch of 4096 with a context of 1000000 needs 16000016 MB per KV type, at "
      "most 2048 are possible; lower --batch or --context",
      std::runtime_error);
}
