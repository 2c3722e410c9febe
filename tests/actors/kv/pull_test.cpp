// Prefill workers with KV of their own on real kernels: whoever pulls what from where, the tokens
// are those of prompts that the shards attend to.
#include "actors/node/pipeline_parts.hpp"
#include "actors/protocol/prefills.hpp"
#include "tests/actors/gateway/served.hpp"

namespace lamella::actors::test {

namespace {

/// Prompts on both sides of every threshold below, some with several choices.
std::vector<std::string> bodies() {
  std::vector<std::string> result;
  uint64_t seed = 0;
  for (const uint32_t tokens : {1u, 15u, 16u, 17u, 39u, 40u, 100u, 257u, 400u, 33u}) {
    ++seed;
    result.push_back(R"({"model":"tiny","prompt":)" + token_list(tokens, seed)
                     + R"(,"max_tokens":12,"ignore_eos":true,"logprobs":2,"seed":)"
                     + std::to_string(seed) + (seed % 3 == 0 ? R"(,"n":3})" : "}"));
  }
  return result;
}

std::vector<json_value> choices(served& s) {
  std::vector<json_value> result;
  for (const auto& x : s.post_all("/v1/completions", bodies())) {
    REQUIRE_MESSAGE(x.status == 200, x.body);
    result.push_back(at(x.json, "choices"));
  }
  CHECK(eventually([&] { return s.idle(); })); // no slot is lost
  return result;
}

config::settings pulling(uint32_t shards, config::partition by, uint32_t serialize_below,
                         uint32_t workers = 1) {
  auto x = tiny_settings();
  x.pools.attention.members = shards;
  x.pools.attention.partition = by;
  x.pools.prefill.attention = config::prefill_attention::own;
  x.pools.prefill.members = workers;
  x.pools.prefill.serialize_below_tokens = serialize_below;
  x.batching.prefill_chunk_tokens = 64;
  return x;
}

/// Bytes of K and V of all prompts' tokens.
double kv_of_prompts(served& s) {
  const auto spec = s.node().parts().program->spec;
  double tokens = 0;
  for (const uint32_t n : {1u, 15u, 16u, 17u, 39u, 40u, 100u, 257u, 400u, 33u}) tokens += n;
  return tokens * static_cast<double>(spec.kv_bytes_per_token(2));
}

} // namespace

TEST_CASE("L-M27 pulled prompts give the tokens of prompts that the shards attend to") {
  const auto expected = [] {
    served s;
    return choices(s);
  }();
  using config::partition;
  for (const uint32_t shards : {1u, 3u})
    for (const auto by : {partition::heads, partition::requests})
      for (const uint32_t serialize_below : {0u, 40u, 100'000u}) {
        CAPTURE(shards);
        CAPTURE((by == partition::heads));
        CAPTURE(serialize_below);
        served s{pulling(shards, by, serialize_below, shards == 3 ? 2 : 1)};
        CHECK(choices(s) == expected);
        // Every row once, whatever the shards and the mode.
        const auto pulled = s.metric("lamella_kv_pulled_bytes_total") - kv_of_prompts(s);
        CHECK(pulled >= 0);
        CHECK(pulled < 64 * 576); // the canary's
      }
}

TEST_CASE("L-M27 prompts of many times the prefill worker's own KV run through it") {
  const auto expected = [] {
    served s;
    return choices(s);
  }();
  auto x = pulling(3, config::partition::heads, 40);
  x.pools.prefill.kv_bytes = 300'000; // 520 tokens
  x.batching.prefill_chunk_tokens = 16;
  served s{x};
  for (int i = 0; i < 3; ++i) CHECK(choices(s) == expected);
}

TEST_CASE("Own KV that has no room for a prompt of the longest kind is refused at the start") {
  auto x = pulling(1, config::partition::heads, 512);
  x.pools.prefill.kv_bytes = 1 << 10;
  CHECK_THROWS_AS(served{x}, start_error);
}

} // namespace lamella::actors::test
