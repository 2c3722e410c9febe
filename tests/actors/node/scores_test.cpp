// The log probabilities of a prompt's tokens have the bytes that the same tokens have when they are
// decoded, however the service is cut and whatever went wrong on the way.
#include "actors/protocol/prefills.hpp"
#include "tests/actors/gateway/served.hpp"

#include <map>

namespace lamella::actors::test {

using namespace std::chrono_literals;

namespace {

constexpr uint32_t alternatives = 3;

using ids = std::vector<uint32_t>;

/// A chat's prompt, the tokens behind it, and how likely each of these was.
struct decoding {
  ids tokens;
  size_t prompt = 0;
  std::vector<double> logprobs;
  std::vector<std::map<uint32_t, double>> top;
};

std::string list_of(const ids& tokens) {
  std::string text;
  for (auto id : tokens) text += (text.empty() ? "[" : ",") + std::to_string(id);
  return text + "]";
}

ids ids_at(const json_value& body, const std::string& path) {
  ids result;
  for (size_t i = 0; i < size_at(body, path); ++i)
    result.push_back(static_cast<uint32_t>(int_at(body, path + "." + std::to_string(i))));
  return result;
}

/// The token of these bytes.
uint32_t token_at(served& s, const json_value& body, const std::string& path) {
  std::string bytes;
  for (auto byte : ids_at(body, path + ".bytes")) bytes += static_cast<char>(byte);
  const auto& text = *s.node().server()->text;
  for (model::token_id t = 0; t < text.vocabulary(); ++t)
    if (text.token_bytes(t) == bytes) return t;
  FAIL("no token " << bytes);
  return 0;
}

decoding decode(served& s, const std::string& words, uint32_t tokens) {
  const auto messages =
      R"({"model":"tiny","messages":[{"role":"user","content":")" + words + R"("}])";
  decoding x;
  x.tokens = ids_at(s.post("/tokenize", messages + "}").json, "tokens");
  x.prompt = x.tokens.size();
  const auto got = s.post("/v1/chat/completions",
                          messages + R"(,"max_tokens":)" + std::to_string(tokens)
                              + R"(,"ignore_eos":true,"temperature":0,"logprobs":true,)"
                              + R"("top_logprobs":)" + std::to_string(alternatives) + "}");
  REQUIRE_MESSAGE(got.status == 200, got.body);
  for (uint32_t i = 0; i < tokens; ++i) {
    const auto path = "choices.0.logprobs.content." + std::to_string(i);
    x.tokens.push_back(token_at(s, got.json, path));
    x.logprobs.push_back(number_at(got.json, path + ".logprob"));
    auto& top = x.top.emplace_back();
    for (uint32_t k = 0; k < alternatives; ++k) {
      const auto other = path + ".top_logprobs." + std::to_string(k);
      top[token_at(s, got.json, other)] = number_at(got.json, other + ".logprob");
    }
  }
  return x;
}

std::vector<decoding> decodings(served& s) {
  std::vector<decoding> result;
  for (const auto& words : {std::string{"a"}, std::string{"where does it begin"},
                            std::string(150, 'x'), std::string{"and so on"}})
    result.push_back(decode(s, words, 60));
  return result;
}

std::string score_body(const decoding& x, const std::string& more = "") {
  return R"({"model":"tiny","prompt":)" + list_of(x.tokens)
         + R"(,"max_tokens":0,"echo":true,"logprobs":3,"prompt_logprobs":3)" + more + "}";
}

/// Both forms say what was said when the tokens were decoded.
void check_scores(const answer& got, const decoding& x) {
  REQUIRE_MESSAGE(got.status == 200, got.body);
  REQUIRE(size_at(got.json, "choices.0.logprobs.token_logprobs") == x.tokens.size());
  REQUIRE(size_at(got.json, "choices.0.prompt_logprobs") == x.tokens.size());
  for (size_t i = x.prompt; i < x.tokens.size(); ++i) {
    CAPTURE(i);
    const auto told = x.logprobs[i - x.prompt];
    const auto path = std::to_string(i);
    CHECK(number_at(got.json, "choices.0.logprobs.token_logprobs." + path) == told);
    const auto by_id = "choices.0.prompt_logprobs." + path + ".";
    const auto own = by_id + std::to_string(x.tokens[i]);
    CHECK(number_at(got.json, own + ".logprob") == told);
    CHECK(int_at(got.json, own + ".rank") == 1); // it was the best
    for (const auto& [id, logprob] : x.top[i - x.prompt])
      CHECK(number_at(got.json, by_id + std::to_string(id) + ".logprob") == logprob);
  }
  CHECK(int_at(got.json, "usage.prompt_tokens_details.cached_tokens") == 0);
}

/// One after the other, then all at once beside prompts that are not scored.
void check_scores(config::settings x) {
  served s{std::move(x)};
  const auto decoded = decodings(s);
  std::vector<std::string> bodies;
  for (const auto& one : decoded) {
    const auto got = s.post("/v1/completions", score_body(one));
    check_scores(got, one);
    bodies.push_back(score_body(one));
    bodies.push_back(R"({"model":"tiny","prompt":)" + list_of(one.tokens)
                     + R"(,"max_tokens":3,"ignore_eos":true})");
  }
  const auto answers = s.post_all("/v1/completions", bodies);
  for (size_t i = 0; i < decoded.size(); ++i) {
    check_scores(answers[2 * i], decoded[i]);
    CHECK(answers[2 * i + 1].status == 200);
  }
  CHECK(eventually([&] { return s.idle(); }));
}

} // namespace

TEST_CASE("A prompt's log probabilities have the bytes of the same tokens decoded") {
  check_scores(tiny_settings());
}

TEST_CASE("Shards by head and by request, chunks and own prefill give a prompt the same scores") {
  auto by_head = tiny_settings(), by_request = by_head, own = by_head, small = by_head;
  by_head.pools.attention.members = 3;
  by_head.pools.attention.parity = false;
  by_request.pools.attention.members = 2;
  by_request.pools.attention.partition = config::partition::requests;
  own.pools.attention.members = 3;
  own.pools.prefill.members = 2;
  own.pools.prefill.attention = config::prefill_attention::own;
  small.batching.prefill_chunk_tokens = 7;
  small.kv.dtype = config::number_type::q8;
  for (const auto& x : {by_head, by_request, own, small}) check_scores(x);
}

TEST_CASE("The prefix cache has a prompt's KV and not its scores: it is computed all the same") {
  auto x = tiny_settings();
  x.kv.prefix_cache = 600s;
  check_scores(x);
  served s{x};
  const auto decoded = decode(s, "what the cache has", 20);
  check_scores(s.post("/v1/completions", score_body(decoded)), decoded);
  // What was computed for the scores is shared with those that want none.
  const auto next =
      s.post("/v1/completions",
             R"({"model":"tiny","prompt":)" + list_of(decoded.tokens) + R"(,"max_tokens":1})");
  CHECK(int_at(next.json, "usage.prompt_tokens_details.cached_tokens")
        == static_cast<int64_t>(decoded.tokens.size()) - 1);
}

TEST_CASE("Prompts as text and lists of prompts, with what is decoded behind them") {
  served s;
  const auto got =
      s.post("/v1/completions", R"({"model":"tiny","prompt":["hé!","the other"],"max_tokens":2,)"
                                R"("ignore_eos":true,"echo":true,"logprobs":1,"temperature":0})");
  REQUIRE_MESSAGE(got.status == 200, got.body);
  REQUIRE(size_at(got.json, "choices") == 2);
  for (const std::string choice : {"0", "1"}) {
    const auto path = "choices." + choice + ".logprobs.";
    const auto count = size_at(got.json, path + "tokens");
    CHECK(count > 2);
    CHECK(size_at(got.json, path + "token_logprobs") == count);
    CHECK(size_at(got.json, path + "top_logprobs") == count);
    CHECK(size_at(got.json, path + "text_offset") == count);
    CHECK(number_at(got.json, path + "token_logprobs.0") == -1e300); // null
    for (size_t i = 1; i < count; ++i)
      CHECK(number_at(got.json, path + "token_logprobs." + std::to_string(i)) <= 0);
  }
  CHECK(text_at(got.json, "choices.0.text").starts_with("hé!"));
  // The answer's first token begins behind the prompt's three characters.
  const auto count = size_at(got.json, "choices.0.logprobs.tokens");
  CHECK(int_at(got.json, "choices.0.logprobs.text_offset." + std::to_string(count - 2)) == 3);
}

TEST_CASE("A chat tells the log probabilities of its prompt beside its choices") {
  served s;
  const auto got = s.post("/v1/chat/completions",
                          R"({"model":"tiny","messages":[{"role":"user","content":"x"}],)"
                          R"("max_tokens":2,"prompt_logprobs":0,"n":2,"ignore_eos":true})");
  REQUIRE_MESSAGE(got.status == 200, got.body);
  CHECK(static_cast<int64_t>(size_at(got.json, "prompt_logprobs"))
        == int_at(got.json, "usage.prompt_tokens"));
}

TEST_CASE("More log probabilities of prompts than are allowed are refused by name") {
  auto x = tiny_settings();
  x.limits.prompt_logprobs = 40;
  served s{x};
  const auto ask = [&](const std::string& more) {
    return s.post("/v1/completions", R"({"model":"tiny","prompt":)" + token_list(10, 1)
                                         + R"(,"max_tokens":1,)" + more + "}");
  };
  CHECK(ask(R"("echo":true,"logprobs":3)").status == 200);
  const auto refused = ask(R"("echo":true,"logprobs":4)");
  CHECK(refused.status == 400);
  CHECK(text_at(refused.json, "error.param") == "logprobs");
  CHECK(text_at(ask(R"("prompt_logprobs":4)").json, "error.param") == "prompt_logprobs");
  CHECK(ask(R"("logprobs":20)").status == 200);
}

TEST_CASE("Scores that were under way when a worker ended are computed again, the same bytes") {
  auto settings = tiny_settings();
  settings.pools.attention.members = 3;
  settings.batching.prefill_chunk_tokens = 16;
  served s{settings};
  const auto decoded = decodings(s);
  std::vector<std::string> bodies;
  for (const auto& one : decoded) bodies.push_back(score_body(one));
  uint64_t epoch = s.node().server()->epoch;
  for (const char* victim : {"attention_shard", "model_replica", "prefill_worker"}) {
    CAPTURE(victim);
    std::vector<answer> answers;
    std::optional<armed> slow{std::in_place, "prefill.chunk=1:delay:50"};
    std::thread client{[&] { answers = s.post_all("/v1/completions", bodies); }};
    CHECK(eventually([&] { return s.load().first > 0; }));
    auto all = s.node().pipeline_actors();
    for (const auto& x : worker_parts(s.node())) all.push_back(x);
    for (const auto& x : all)
      if (static_cast<caf::local_actor*>(caf::actor_cast<caf::abstract_actor*>(x))->name()
          == std::string_view{victim}) {
        caf::anon_send_exit(x, caf::exit_reason::kill);
        break;
      }
    CHECK(eventually([&] { return s.node().server()->epoch > epoch; }));
    slow.reset();
    client.join();
    epoch = s.node().server()->epoch;
    for (size_t i = 0; i < decoded.size(); ++i) check_scores(answers[i], decoded[i]);
    CHECK(eventually([&] { return s.idle(); }));
  }
}

} // namespace lamella::actors::test
