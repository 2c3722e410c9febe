// The bits of an answer depend on the request alone: not on who else runs, how the pipeline is cut,
// or what went wrong on the way (issue 2, "Bits").
#include "actors/protocol/prefills.hpp"
#include "tests/actors/gateway/served.hpp"

#include <future>

namespace lamella::actors::test {
namespace {

/// Prompts of awkward lengths; some greedy, some drawn, some with penalties. All want log
/// probabilities, which show every bit of the logits that the sampler saw.
std::vector<std::string> requests(uint32_t count, uint32_t max_tokens = 20) {
  const uint32_t lengths[]{1, 7, 17, 54, 130, 63, 2, 300};
  const char* samplings[]{R"("temperature":0)", R"("temperature":1)",
                          R"("temperature":1.3,"top_p":0.9,"top_k":40)",
                          R"("temperature":0.8,"min_p":0.02,"frequency_penalty":0.7)"};
  std::vector<std::string> bodies;
  for (uint32_t i = 0; i < count; ++i)
    bodies.push_back(R"({"model":"tiny","prompt":)" + token_list(lengths[i % 8], i + 1)
                     + R"(,"max_tokens":)" + std::to_string(max_tokens)
                     + R"(,"ignore_eos":true,"logprobs":2,"seed":)" + std::to_string(i + 100) + ","
                     + samplings[i % 4] + "}");
  return bodies;
}

/// What to look at when two answers differ.
std::string shown(const json_value& choices) {
  std::string out = text_at(choices, "0.text") + " |";
  for (size_t i = 0; i < size_at(choices, "0.logprobs.token_logprobs"); ++i) {
    const auto path = "0.logprobs.token_logprobs." + std::to_string(i);
    out += " " + std::to_string(number_at(choices, path));
  }
  return out;
}

std::vector<json_value> choices_of(const std::vector<answer>& answers) {
  std::vector<json_value> result;
  for (const auto& x : answers) {
    REQUIRE_MESSAGE(x.status == 200, x.body);
    result.push_back(at(x.json, "choices"));
  }
  return result;
}

std::vector<json_value> alone(served& s, const std::vector<std::string>& bodies) {
  std::vector<answer> answers;
  for (const auto& body : bodies) answers.push_back(s.post("/v1/completions", body));
  return choices_of(answers);
}

std::vector<json_value> together(served& s, const std::vector<std::string>& bodies) {
  return choices_of(s.post_all("/v1/completions", bodies));
}

/// One shard, one replica, one request at a time.
const std::vector<json_value>& expected() {
  static const auto result = [] {
    served s;
    return alone(s, requests(32));
  }();
  return result;
}

/// No token leaves before all of them are there: they run or wait together.
std::vector<json_value> in_one_burst(served& s, const std::vector<std::string>& bodies) {
  std::optional<slow_tokens> slow{std::in_place};
  auto answers = std::async(std::launch::async, [&] { return together(s, bodies); });
  CHECK(eventually([&] {
    const auto [running, waiting] = s.load();
    return running + waiting == bodies.size();
  }));
  slow.reset();
  return answers.get();
}

void check_equal(const std::vector<json_value>& got, const std::vector<json_value>& wanted) {
  REQUIRE(got.size() == wanted.size());
  for (size_t i = 0; i < got.size(); ++i) {
    CAPTURE(i);
    CHECK_MESSAGE(got[i] == wanted[i], shown(got[i]), " instead of ", shown(wanted[i]));
  }
}

void check_same(config::settings x) {
  served s{std::move(x)};
  check_equal(together(s, requests(32)), expected());
}

} // namespace

TEST_CASE(
    "L-M23 V-M14 a request among 31 others gets the tokens and log probabilities it gets alone") {
  REQUIRE(expected().size() == 32);
  // Not vacuous: answers have text and differ from each other.
  CHECK(size_at(expected()[0], "0.logprobs.token_logprobs") > 0);
  CHECK(!(expected()[0] == expected()[4]));
  check_same(tiny_settings());
}

TEST_CASE("L-M23 three shards by head change no bit") {
  auto x = tiny_settings();
  x.pools.attention.members = 3;
  check_same(x);
}

TEST_CASE("L-M24 two shards by request change no bit") {
  auto x = tiny_settings();
  x.pools.attention.members = 2;
  x.pools.attention.partition = config::partition::requests;
  check_same(x);
}

TEST_CASE("L-M23 L-M24 a cell by head beside one by request changes no bit") {
  auto x = tiny_settings();
  auto& by_head = x.pools.attention.cells["east"] = x.pools.attention;
  by_head.members = 3;
  auto& by_request = x.pools.attention.cells["west"] = x.pools.attention;
  by_request.members = 2;
  by_request.partition = config::partition::requests;
  check_same(x);
}

TEST_CASE("V-M07 two replicas with two batches and two prefill workers change no bit") {
  auto x = tiny_settings();
  x.pools.model.members = 2;
  x.pools.prefill.members = 2;
  x.pools.attention.members = 3;
  check_same(x);
}

TEST_CASE("L-M17 L-M20 L-M21 batches that rotate over two or three replicas change no bit") {
  auto x = tiny_settings();
  x.batching.pipeline = config::pipeline::rotational;
  x.batching.max_batch = 5; // several batches have to be used, and requests wait
  SUBCASE("three batches, two replicas") { x.pools.model.members = 2; }
  SUBCASE("three batches, two replicas, three shards by head") {
    x.pools.model.members = 2;
    x.pools.attention.members = 3;
  }
  SUBCASE("four batches, three replicas, two shards by request") {
    x.pools.model.members = 3;
    x.pools.attention.members = 2;
    x.pools.attention.partition = config::partition::requests;
  }
  SUBCASE("five batches, three replicas") {
    x.pools.model.members = 3;
    x.batching.batches = 5;
  }
  SUBCASE("two batches, one replica") { x.pools.model.members = 1; }
  check_same(x);
}

TEST_CASE("V-M17 pipelines that are off or chosen change no bit") {
  auto x = tiny_settings();
  x.batching.pipeline = config::pipeline::automatic;
  SUBCASE("chosen, one replica") {}
  SUBCASE("chosen, two replicas, mixed launches") {
    x.pools.model.members = 2;
    x.batching.launches = config::launches::mixed;
  }
  SUBCASE("off, two replicas, three shards") {
    x.batching.pipeline = config::pipeline::off;
    x.pools.model.members = 2;
    x.pools.attention.members = 3;
  }
  check_same(x);
}

TEST_CASE("S-M02 V-M16 prompts in the launches of batches change no bit") {
  auto x = tiny_settings();
  x.batching.launches = config::launches::mixed;
  SUBCASE("one batch, all in one launch") {}
  SUBCASE("chunks of seven") { x.batching.prefill_chunk_tokens = 7; }
  SUBCASE("sequences that stand back") { x.batching.stand_backs = 4; }
  SUBCASE("a small batch, three shards by head") {
    x.batching.max_batch = 3;
    x.pools.attention.members = 3;
  }
  SUBCASE("two batches") { x.pools.model.members = 2; }
  SUBCASE("two shards by request") {
    x.pools.attention.members = 2;
    x.pools.attention.partition = config::partition::requests;
  }
  SUBCASE("two batches, two shards by request") {
    x.pools.model.members = 2;
    x.pools.attention.members = 2;
    x.pools.attention.partition = config::partition::requests;
  }
  SUBCASE("three batches that rotate over two replicas") {
    x.batching.pipeline = config::pipeline::rotational;
    x.batching.max_batch = 5;
    x.batching.stand_backs = 1;
    x.pools.model.members = 2;
  }
  SUBCASE("beside prefill workers with KV of their own") {
    x.pools.prefill.members = 2;
    x.pools.prefill.attention = config::prefill_attention::own;
    x.pools.prefill.overflow_tokens = 64;
  }
  check_same(x);
}

TEST_CASE("S-M03 S-M07 prefill workers with KV of their own that decode in a burst change no bit") {
  auto x = tiny_settings();
  x.batching.launches = config::launches::mixed;
  x.batching.max_batch = 4;
  x.pools.prefill.members = 2;
  x.pools.prefill.attention = config::prefill_attention::own;
  x.pools.prefill.overflow_tokens = 64;
  SUBCASE("one shard") {}
  SUBCASE("three shards by head, two replicas") {
    x.pools.model.members = 2;
    x.pools.attention.members = 3;
  }
  SUBCASE("two shards by request, small chunks") {
    x.pools.attention.members = 2;
    x.pools.attention.partition = config::partition::requests;
    x.batching.prefill_chunk_tokens = 7;
  }
  SUBCASE("batches that rotate over two replicas") {
    x.pools.model.members = 2;
    x.batching.pipeline = config::pipeline::rotational;
  }
  SUBCASE("machines that change their pool") {
    x.pools.prefill.repurpose = std::chrono::milliseconds{1};
  }
  REQUIRE(!expected().empty()); // before tokens are slow
  served s{x};
  const auto got = in_one_burst(s, requests(32));
  CHECK(s.metric("lamella_sequences_overflowed_total") > 0);
  check_equal(got, expected());
  CHECK(eventually([&] { return s.idle(); }));
}

TEST_CASE("L-M15 L-M16 queries sent early or with K and V: no bit changes") {
  auto x = tiny_settings();
  x.batching.early_q = false;
  x.pools.attention.members = 3;
  SUBCASE("one replica") {}
  SUBCASE("batches that rotate over two") {
    x.pools.model.members = 2;
    x.batching.pipeline = config::pipeline::rotational;
  }
  check_same(x);
}

TEST_CASE("V-M08 mini-batches: no bit changes") {
  auto x = tiny_settings();
  x.batching.mini_batches = 3;
  x.pools.attention.members = 3;
  SUBCASE("one replica") {}
  SUBCASE("with parity") { x.pools.attention.parity = true; }
  SUBCASE("by request") { x.pools.attention.partition = config::partition::requests; }
  SUBCASE("batches that rotate over two") {
    x.pools.model.members = 2;
    x.batching.pipeline = config::pipeline::rotational;
  }
  SUBCASE("prompts in their launches") { x.batching.launches = config::launches::mixed; }
  check_same(x);
}

TEST_CASE("Any prefill chunk gives the same bits") {
  for (uint32_t chunk : {1u, 7u, 64u}) {
    CAPTURE(chunk);
    auto x = tiny_settings();
    x.batching.prefill_chunk_tokens = chunk;
    check_same(x);
  }
}

TEST_CASE("V-M14 a small batch with requests joining and leaving gives the same bits") {
  auto x = tiny_settings();
  x.batching.max_batch = 3;
  check_same(x);
}

TEST_CASE(
    "L-M23 L-M24 KV in 8 and 4 bits: shards by head or request and own prefill change no bit") {
  const auto bodies = requests(16);
  for (const auto type : {config::number_type::q8, config::number_type::q4}) {
    CAPTURE(static_cast<int>(type));
    auto one = tiny_settings();
    one.kv.dtype = type;
    std::vector<json_value> wanted;
    {
      served s{one};
      wanted = alone(s, bodies);
    }
    uint32_t others = 0;
    for (size_t i = 0; i < wanted.size(); ++i) others += wanted[i] == expected()[i] ? 0 : 1;
    CHECK(others > 0); // than in 16 bits
    auto by_head = one, by_request = one, own = one;
    by_head.pools.attention.members = 3;
    by_request.pools.attention.members = 2;
    by_request.pools.attention.partition = config::partition::requests;
    own.pools.attention.members = 3;
    own.pools.prefill.members = 2;
    own.pools.prefill.attention = config::prefill_attention::own;
    for (const auto& x : {by_head, by_request, own}) {
      served s{x};
      check_equal(together(s, bodies), wanted);
    }
  }
}

// Room for about four sequences of those that want to run: growth must throw out the youngest,
// which runs again from its tokens.
TEST_CASE("V-M12 preempted requests end with the tokens of an undisturbed run") {
  std::vector<std::string> bodies;
  for (uint32_t i = 0; i < 8; ++i)
    bodies.push_back(R"({"model":"tiny","prompt":)" + token_list(20, i + 1)
                     + R"(,"max_tokens":110,"ignore_eos":true,"logprobs":1,"seed":)"
                     + std::to_string(i) + (i % 2 ? R"(,"presence_penalty":0.5})" : "}"));
  std::vector<json_value> undisturbed;
  {
    served s;
    undisturbed = alone(s, bodies);
    CHECK(s.metric("vllm:num_preemptions_total") == 0);
  }
  for (const bool by_request : {false, true}) {
    CAPTURE(by_request);
    auto x = tiny_settings();
    x.kv.bytes = 200 * 576; // 576 bytes: 3 layers, 3 KV heads, 16 dims, K and V of 2 bytes each
    if (by_request) {
      x.pools.attention.members = 2;
      x.pools.attention.partition = config::partition::requests;
    }
    served s{x};
    REQUIRE(s.node().server()->slots == 200);
    const auto got = in_one_burst(s, bodies);
    CHECK(s.metric("vllm:num_preemptions_total") > 0);
    check_equal(got, undisturbed);
    CHECK(eventually([&] { return s.idle(); }));
  }
}

} // namespace lamella::actors::test
