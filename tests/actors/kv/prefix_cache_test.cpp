// Prompts that begin like others take the K and V of those: nobody sees it but by its time.
#include "actors/node/pipeline_parts.hpp"
#include "actors/protocol/epochs.hpp"
#include "actors/protocol/prefills.hpp"
#include "base/json_writer.hpp"
#include "tests/actors/gateway/served.hpp"
#include "tests/random.hpp"

#include <fstream>
#include <future>
#include <string_view>

namespace lamella::actors::test {

using namespace std::chrono_literals;

namespace {

/// Prefill workers have KV of their own, and so do not see what the shards have.
config::settings apart(uint32_t workers = 1) {
  auto x = tiny_settings();
  x.kv.prefix_cache = 600s;
  x.pools.prefill.attention = config::prefill_attention::own;
  x.pools.prefill.members = workers;
  x.pools.prefill.serialize_below_tokens = 40;
  x.batching.prefill_chunk_tokens = 64;
  return x;
}

config::settings caching(uint32_t layers = 3) {
  auto x = tiny_settings(layers);
  x.kv.prefix_cache = 600s;
  return x;
}

std::string body_of(const std::string& prompt, const std::string& more = "",
                    uint32_t max_tokens = 12) {
  return R"({"model":"tiny","prompt":)" + prompt + R"(,"max_tokens":)" + std::to_string(max_tokens)
         + R"(,"ignore_eos":true,"logprobs":2,"seed":5)" + more + "}";
}

int64_t cached_in(const answer& x) {
  return int_at(x.json, "usage.prompt_tokens_details.cached_tokens");
}

std::string ids(const std::vector<uint32_t>& tokens) {
  std::string text;
  for (auto t : tokens) text += (text.empty() ? "[" : ",") + std::to_string(t);
  return text + "]";
}

/// Conversations that grow: each prompt is a beginning that many have, often with more behind it.
std::vector<std::string> conversations(uint32_t count, uint64_t seed, uint32_t max_tokens = 12) {
  tests::splitmix dice{seed};
  std::vector<std::vector<uint32_t>> said{{}};
  std::vector<std::string> bodies;
  for (uint32_t i = 0; i < count; ++i) {
    auto prompt = said[dice.below(said.size())];
    for (auto n = 1 + dice.below(60); n > 0; --n)
      prompt.push_back(3 + static_cast<uint32_t>(dice.below(200)));
    if (prompt.size() < 150) said.push_back(prompt);
    const char* more[]{R"(,"temperature":0)", R"(,"temperature":1.2)",
                       R"(,"temperature":0.8,"n":3)",
                       R"(,"temperature":1,"frequency_penalty":0.7)"};
    bodies.push_back(body_of(ids(prompt), more[i % 4], max_tokens));
  }
  return bodies;
}

std::vector<json_value> choices_of(const std::vector<answer>& answers) {
  std::vector<json_value> result;
  for (const auto& x : answers) {
    REQUIRE_MESSAGE(x.status == 200, x.body);
    result.push_back(at(x.json, "choices"));
  }
  return result;
}

/// `finds`: whether something must be found.
void check_same(const config::settings& with, uint64_t seed, bool preempts = false,
                bool finds = true) {
  CAPTURE(seed);
  const auto bodies = conversations(48, seed, preempts ? 70 : 12);
  auto without = with;
  without.kv.prefix_cache = 0s;
  served plain{without};
  const auto wanted = choices_of(plain.post_all("/v1/completions", bodies));
  CHECK(plain.metric("vllm:prefix_cache_hits_total") == 0);
  served s{with};
  for (int round = 0; round < 2; ++round) {
    const auto got = choices_of(s.post_all("/v1/completions", bodies));
    for (size_t i = 0; i < bodies.size(); ++i) {
      CAPTURE(bodies[i]);
      CHECK(got[i] == wanted[i]);
    }
  }
  if (finds) CHECK(s.metric("vllm:prefix_cache_hits_total") > 0);
  if (preempts) CHECK(s.metric("vllm:num_preemptions_total") > 0);
  CHECK(eventually([&] { return s.idle(); }));
}

} // namespace

TEST_CASE("prefix cache: the same prompt again is found but for its last token") {
  served s{caching()};
  const auto first = s.post("/v1/completions", body_of(token_list(50, 1)));
  REQUIRE_MESSAGE(first.status == 200, first.body);
  CHECK(cached_in(first) == 0);
  const auto second = s.post("/v1/completions", body_of(token_list(50, 1)));
  CHECK(cached_in(second) == 49);
  CHECK(int_at(second.json, "usage.prompt_tokens") == 50);
  CHECK(at(second.json, "choices") == at(first.json, "choices"));
  CHECK(s.metric("vllm:prefix_cache_queries_total") == 100);
  CHECK(s.metric("vllm:prefix_cache_hits_total") == 49);
  CHECK(eventually([&] { return s.idle(); }));
  const auto status = s.admin("GET", "/admin/status");
  CHECK(int_at(status.json, "pools.0.slots.used") == 0);
  CHECK(int_at(status.json, "pools.0.slots.cached") == 61); // its last token has no K and V
  CHECK(int_at(status.json, "pools.0.references.counted") == 61);
  CHECK(int_at(status.json, "pools.0.references.held") == 61);
  CHECK(s.metric("lamella_kv_usage_ratio") == 0);
}

TEST_CASE("prefix cache: choices of one prompt count what it found once") {
  served s{caching()};
  s.post("/v1/completions", body_of(token_list(50, 1)));
  const auto x = s.post("/v1/completions", body_of(token_list(50, 1), R"(,"n":3)"));
  CHECK(int_at(x.json, "usage.prompt_tokens") == 50);
  CHECK(cached_in(x) == 49);
}

// What a prompt goes on with is the answer itself, token by token: K and V of it were written by
// decoding, and are found by who computes a prompt.
TEST_CASE("prefix cache: a conversation finds what was said before, answers included") {
  const auto turn = [](served& s, const std::string& prompt) {
    auto x = s.post("/v1/completions", body_of(prompt, R"(,"temperature":0)"));
    REQUIRE_MESSAGE(x.status == 200, x.body);
    return x;
  };
  const auto tokens_of = [](served& s, const answer& x) {
    std::vector<uint32_t> tokens;
    const auto asked = s.post("/tokenize", R"({"model":"tiny","add_special_tokens":false,"prompt":)"
                                               + to_json(at(x.json, "choices.0.text")) + "}");
    REQUIRE_MESSAGE(asked.status == 200, asked.body);
    for (size_t i = 0; i < size_at(asked.json, "tokens"); ++i)
      tokens.push_back(static_cast<uint32_t>(int_at(asked.json, "tokens." + std::to_string(i))));
    return tokens;
  };
  served s{caching()}, plain;
  std::vector<uint32_t> said;
  for (uint32_t i = 0; i < 40; ++i) said.push_back(70 + i % 20);
  int64_t most = 0; // of the answers: their text need not become the same tokens again
  for (int i = 0; i < 4; ++i) {
    const auto x = turn(s, ids(said));
    CHECK(at(x.json, "choices") == at(turn(plain, ids(said)).json, "choices"));
    if (i > 0) most = std::max(most, cached_in(x) - static_cast<int64_t>(said.size()) + 13);
    const auto more = tokens_of(s, x);
    said.insert(said.end(), more.begin(), more.end());
  }
  CHECK(most > 1);
}

TEST_CASE("prefix cache: answers are those of a service without it, bit for bit") {
  SUBCASE("one shard") { check_same(caching(), 1); }
  SUBCASE("by head, small chunks") {
    auto x = caching();
    x.pools.attention.members = 3;
    x.batching.prefill_chunk_tokens = 16;
    check_same(x, 2);
  }
  SUBCASE("whole requests on two shards, a cache in 8 bits") {
    auto x = caching();
    x.pools.attention.members = 2;
    x.pools.attention.partition = config::partition::requests;
    x.kv.dtype = config::number_type::q8;
    check_same(x, 3);
  }
  SUBCASE("with parity") {
    auto x = caching();
    x.pools.attention.members = 3;
    x.pools.attention.parity = true;
    check_same(x, 4);
  }
  SUBCASE("so few slots that sequences are preempted") {
    auto x = caching();
    x.kv.bytes = 400 * 576;
    check_same(x, 5, true);
  }
  SUBCASE("two replicas") {
    auto x = caching();
    x.pools.model.members = 2;
    check_same(x, 6);
  }
  SUBCASE("prefill workers with KV of their own") {
    auto x = apart(2);
    x.pools.model.members = 2;
    x.pools.attention.members = 3;
    check_same(x, 7);
  }
  SUBCASE("the same with whole requests on two shards") {
    auto x = apart();
    x.pools.attention.members = 2;
    x.pools.attention.partition = config::partition::requests;
    check_same(x, 8);
  }
  SUBCASE("the same with parity") {
    auto x = apart();
    x.pools.attention.members = 3;
    x.pools.attention.parity = true;
    check_same(x, 9, false, false); // only what has its parity by the end of its request is kept
  }
}

// The shards attend to what they have and to the rest of the prompt, which a replica computes; a
// prompt of which they have little is the prefill worker's, which has KV of its own.
TEST_CASE("prefix cache: beside prefill workers with own KV, half of a prompt is worth taking") {
  served s{apart()};
  const auto ask = [&](const std::vector<uint32_t>& prompt) {
    const auto x = s.post("/v1/completions", body_of(ids(prompt)));
    REQUIRE_MESSAGE(x.status == 200, x.body);
    return cached_in(x);
  };
  const auto prompt_of = [](uint32_t common, uint32_t own, uint32_t salt) {
    std::vector<uint32_t> tokens;
    for (uint32_t i = 0; i < common; ++i) tokens.push_back(70 + i % 20);
    for (uint32_t i = 0; i < own; ++i) tokens.push_back(100 + (i * 7 + salt) % 90);
    return tokens;
  };
  const auto pulled = [&] { return s.metric("lamella_kv_pulled_bytes_total"); };
  CHECK(ask(prompt_of(50, 0, 0)) == 0);
  const auto before = pulled();
  CHECK(ask(prompt_of(50, 50, 1)) == 50);
  CHECK(pulled() == before); // it went to the shards at once
  CHECK(ask(prompt_of(50, 51, 2)) == 0);
  CHECK(pulled() > before);
  CHECK(ask(prompt_of(50, 51, 2)) == 100);
}

// Its replica ends: the shards have their KV still, and the cache with it.
TEST_CASE("prefix cache: outlives a pipeline, for those that run and those that come") {
  const auto bodies = conversations(24, 9);
  served plain;
  const auto wanted = choices_of(plain.post_all("/v1/completions", bodies));
  served s{caching()};
  CHECK(choices_of(s.post_all("/v1/completions", bodies)) == wanted);
  std::optional<slow_tokens> slow{100ms};
  auto answers =
      std::async(std::launch::async, [&] { return s.post_all("/v1/completions", bodies); });
  CHECK(eventually([&] { return s.load().first > 12; }));
  caf::anon_send_exit(s.node().parts().workers->replicas.front(), caf::exit_reason::kill);
  slow.reset();
  CHECK(choices_of(answers.get()) == wanted);
  CHECK(s.node().server()->epoch == 2);
  CHECK(eventually([&] { return s.idle(); }));
  s.post("/v1/completions", body_of(token_list(50, 1)));
  CHECK(cached_in(s.post("/v1/completions", body_of(token_list(50, 1)))) == 49);
  CHECK(cached_in(s.post("/v1/completions", bodies.back())) > 0);
}

TEST_CASE("prefix cache: requests of other keys, or with another cache_salt, find nothing") {
  tests::scratch_folder folder;
  std::ofstream{folder / "keys"} << "first-key-0001\nsecond-key-002\n";
  auto x = caching();
  x.http.api_keys_file = folder / "keys";
  served s{x};
  const auto ask = [&](const std::string& key, const std::string& more = "") {
    const auto answer = s.post("/v1/completions", body_of(token_list(50, 1), more),
                               {{"authorization", "Bearer " + key}});
    REQUIRE_MESSAGE(answer.status == 200, answer.body);
    return cached_in(answer);
  };
  CHECK(ask("first-key-0001") == 0);
  CHECK(ask("second-key-002") == 0);
  CHECK(ask("first-key-0001") == 49);
  CHECK(ask("first-key-0001", R"(,"cache_salt":"mine")") == 0);
  CHECK(ask("first-key-0001", R"(,"cache_salt":"mine")") == 49);
  CHECK(ask("second-key-002", R"(,"cache_salt":"mine")") == 0);
  const auto refused = s.post("/v1/completions", body_of(token_list(50, 1), R"(,"cache_salt":7)"),
                              {{"authorization", "Bearer first-key-0001"}});
  CHECK(refused.status == 400);
  CHECK(text_at(refused.json, "error.param") == "cache_salt");
}

} // namespace lamella::actors::test
