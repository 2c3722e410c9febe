// Replicas of several ranks in a whole node (L-M03): the bits of an answer, refusals, recovery.
#include "actors/device/model_replica.hpp"
#include "actors/protocol/epochs.hpp"
#include "tests/actors/gateway/served.hpp"

namespace lamella::actors::test {

using namespace std::chrono_literals;

namespace {

/// 12 heads on 6 KV heads: for 1, 2, 3 and 6 ranks.
config::settings settings_of(uint32_t ranks) {
  static tests::scratch_folder folder;
  const auto path = folder / "even.gguf";
  if (!std::filesystem::exists(path)) {
    tests::tiny_model_options model;
    model.embedding = 192;
    model.heads = 12;
    model.kv_heads = 6;
    model.feed_forward = 192;
    tests::write_tiny_model(path, model);
  }
  auto x = tiny_settings();
  x.model.path = path;
  x.pools.model.tensor_parallel = ranks;
  return x;
}

std::vector<std::string> requests(uint32_t count, uint32_t max_tokens = 12) {
  std::vector<std::string> bodies;
  for (uint32_t i = 0; i < count; ++i)
    bodies.push_back(R"({"model":"tiny","prompt":)" + token_list(1 + 9 * i % 70, i + 1)
                     + R"(,"max_tokens":)" + std::to_string(max_tokens)
                     + R"(,"ignore_eos":true,"logprobs":2,"seed":)" + std::to_string(i)
                     + (i % 2 == 0 ? R"(,"temperature":0})" : R"(,"frequency_penalty":0.5})"));
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

std::vector<json_value> together(config::settings x, uint32_t count) {
  served s{std::move(x)};
  return choices_of(s.post_all("/v1/completions", requests(count)));
}

} // namespace

TEST_CASE("L-M03 with two ranks no cut of the work changes a bit of an answer") {
  constexpr uint32_t count = 16;
  std::vector<json_value> alone;
  {
    served s{settings_of(2)};
    std::vector<answer> answers;
    for (const auto& body : requests(count)) answers.push_back(s.post("/v1/completions", body));
    alone = choices_of(answers);
  }
  CHECK(!(alone[0] == alone[1]));
  CHECK(together(settings_of(2), count) == alone);
  auto x = settings_of(2);
  x.pools.attention.members = 3; // whose borders are not those of the ranks
  x.batching.prefill_chunk_tokens = 7;
  CHECK(together(x, count) == alone);
  x = settings_of(2);
  x.pools.model.members = 2;
  x.pools.prefill.members = 2;
  x.pools.attention.members = 2;
  x.pools.attention.partition = config::partition::requests;
  CHECK(together(x, count) == alone);
}

TEST_CASE("L-M03 L-M17 L-M21 batches that rotate over replicas of several ranks change no bit") {
  constexpr uint32_t count = 16;
  const auto check_ranks = [](uint32_t ranks, auto change) {
    const auto alone = together(settings_of(ranks), count);
    auto x = settings_of(ranks);
    x.batching.pipeline = config::pipeline::rotational;
    x.batching.max_batch = 5; // several batches have to be used, and requests wait
    x.pools.model.members = 2;
    change(x);
    CHECK(together(x, count) == alone);
  };
  SUBCASE("three batches on two replicas of two") {
    check_ranks(2, [](config::settings&) {});
  }
  SUBCASE("three batches on two replicas of two, three shards by head") {
    check_ranks(2, [](config::settings& x) { x.pools.attention.members = 3; });
  }
  SUBCASE("four batches on three replicas of two, two shards by request, mixed launches") {
    check_ranks(2, [](config::settings& x) {
      x.pools.model.members = 3;
      x.pools.attention.members = 2;
      x.pools.attention.partition = config::partition::requests;
      x.batching.launches = config::launches::mixed;
    });
  }
  SUBCASE("two batches on a replica of three") {
    check_ranks(3, [](config::settings& x) { x.pools.model.members = 1; });
  }
  SUBCASE("three batches on two replicas of three") {
    check_ranks(3, [](config::settings& x) { x.pools.attention.members = 2; });
  }
}

TEST_CASE("L-M03 every rank scores a prompt: the same bytes as with one shard and one chunk") {
  const auto scored = [](config::settings x) {
    served s{std::move(x)};
    const auto got =
        s.post("/v1/completions", R"({"model":"tiny","prompt":)" + token_list(60, 9)
                                      + R"(,"max_tokens":5,"ignore_eos":true,"temperature":0,)"
                                      + R"("echo":true,"logprobs":4})");
    REQUIRE_MESSAGE(got.status == 200, got.body);
    CHECK(size_at(got.json, "choices.0.logprobs.token_logprobs") == 65);
    return at(got.json, "choices");
  };
  auto x = settings_of(2);
  const auto whole = scored(x);
  x.pools.attention.members = 3;
  x.batching.prefill_chunk_tokens = 7;
  CHECK(scored(x) == whole);
}

TEST_CASE("L-M03 answers of other degrees are close, and told apart by their fingerprints") {
  std::vector<std::string> fingerprints;
  std::vector<double> first; // log probability of the first token of a greedy request
  for (uint32_t ranks : {1u, 2u, 3u, 6u}) {
    served s{settings_of(ranks)};
    const auto got = s.post("/v1/completions", requests(1)[0]);
    REQUIRE_MESSAGE(got.status == 200, got.body);
    fingerprints.push_back(text_at(got.json, "system_fingerprint"));
    first.push_back(number_at(got.json, "choices.0.logprobs.token_logprobs.0"));
  }
  for (size_t i = 1; i < first.size(); ++i) {
    CHECK(std::abs(first[i] - first[0]) < 0.05); // parts of sums meet the wire's 16 bits
    for (size_t j = 0; j < i; ++j) CHECK(fingerprints[i] != fingerprints[j]);
  }
}

TEST_CASE("L-M03 a degree that the model cannot be split by is a configuration error") {
  actors::node n{settings_of(4), false};
  try {
    n.start([](const std::string&, uint64_t, uint64_t) {});
    FAIL("it started");
  } catch (const start_error& e) {
    CHECK(e.exit_code == 78);
    CHECK(std::string{e.what()}
          == "pools.model.tensor_parallel: the model's 6 KV heads cannot be shared by 4 ranks");
  }
}

TEST_CASE("L-M25 L-M03 when a rank behind the first ends, requests end with their own tokens") {
  auto settings = settings_of(2);
  const auto wanted = requests(6, 100);
  std::vector<json_value> undisturbed;
  {
    served s{settings};
    undisturbed = choices_of(s.post_all("/v1/completions", wanted));
  }
  served s{settings};
  std::vector<answer> answers;
  std::optional<slow_tokens> slow{100ms};
  std::thread client{[&] { answers = s.post_all("/v1/completions", wanted); }};
  CHECK(eventually([&] { return s.load().first >= 6; }));
  using replica = model_replica_actor::stateful_pointer<model_replica_state>;
  const auto& first = s.node().parts().workers->replicas.front();
  auto* actor = caf::actor_cast<caf::abstract_actor*>(first);
  const auto& others = static_cast<replica>(actor)->state.config.others; // which does not change
  REQUIRE(others.size() == 1);
  caf::anon_send_exit(others.front().executor, caf::exit_reason::kill);
  slow.reset();
  client.join();
  CHECK(choices_of(answers) == undisturbed);
  CHECK(s.node().server()->epoch == 2);
}

} // namespace lamella::actors::test
