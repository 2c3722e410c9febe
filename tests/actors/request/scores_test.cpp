// Requests that want the log probabilities of their prompts: what they ask, keep and say.
#include "actors/protocol/prefills.hpp"
#include "tests/actors/gateway/served.hpp"
#include "tests/actors/request/request_world.hpp"

namespace lamella::actors::test {

namespace {

/// A prompt of ten tokens that is echoed with log probabilities.
struct world : request_world {
  explicit world(const std::string& more = R"(,"echo":true,"logprobs":1)", uint32_t max_tokens = 2)
      : request_world{more, max_tokens} {}

  /// Every token's score is minus its id.
  void score_all(bool finite = true) {
    while (!books.prefills->promises.empty()) {
      const auto x =
          books.prefills->asked[books.prefills->asked.size() - books.prefills->promises.size()];
      prefilled result;
      for (size_t k = 0; k < x.samplings.size(); ++k)
        result.tokens.push_back(drawn(x.draws[k], x.samplings[k].choice));
      for (size_t i = 1; i < x.tokens.size() && x.scored > 0; ++i) {
        sampled_token score;
        score.token = x.tokens[i];
        score.logprob = -static_cast<float>(x.tokens[i]);
        score.rank = 1;
        score.finite = finite;
        result.scores.push_back(score);
      }
      books.prefills->promises.front().deliver(result);
      books.prefills->promises.pop_front();
      settle();
    }
  }
  json_value json() const { return parse_json(exchange->body); }
};

} // namespace

TEST_CASE("a prompt is computed wholly and scored once; its choices say it with what they add") {
  world w{R"(,"echo":true,"logprobs":1,"n":2)"};
  REQUIRE(w.books.scheduler->asked.size() == 1);
  CHECK(w.books.scheduler->asked[0].text.computed);
  w.admit_all(2);
  REQUIRE(w.books.prefills->asked.size() == 1);
  CHECK(w.books.prefills->asked[0].scored == 2);
  CHECK(w.books.prefills->asked[0].cached == 0);
  w.score_all();
  for (uint32_t k = 0; k < 2; ++k) w.say(1, finish::length, k);
  REQUIRE(w.exchange->status == 200);
  for (const std::string choice : {"0", "1"}) {
    const auto path = "choices." + choice + ".logprobs.";
    CHECK(size_at(w.json(), path + "tokens") == 12);
    CHECK(number_at(w.json(), path + "token_logprobs.1") == -4);
    CHECK(number_at(w.json(), path + "token_logprobs.9") == -12);
    CHECK(number_at(w.json(), path + "token_logprobs.10") == -1);
    CHECK(at(w.json(), path + "token_logprobs.0").kind() == json_value{}.kind());
  }
  CHECK(w.over);
}

TEST_CASE("max_tokens 0 with scores computes the prompt and draws nothing") {
  world w{R"(,"echo":true,"logprobs":1)", 0};
  w.admit_all();
  w.score_all();
  REQUIRE(w.exchange->status == 200);
  CHECK(size_at(w.json(), "choices.0.logprobs.tokens") == 10);
  CHECK(text_at(w.json(), "choices.0.finish_reason") == "length");
  CHECK(int_at(w.json(), "usage.completion_tokens") == 0);
  CHECK(w.books.batches->joined.empty());
  CHECK(w.books.kv->released == std::vector<sequence_id>{seq(1)});
  CHECK(w.books.scheduler->retired == std::vector<sequence_id>{seq(1)});
  CHECK(w.over);
}

TEST_CASE("scores that were told stay when the pipeline is lost; others are asked for again") {
  for (const bool told : {false, true}) {
    CAPTURE(told);
    world w;
    w.admit_all();
    if (told) w.score_all();
    w.rebuild();
    CHECK(w.books.scheduler->asked.at(0).text.computed == !told);
    w.admit_all();
    CHECK(w.books.prefills->asked.at(0).scored == (told ? 0 : 2));
    w.score_all();
    w.say(1, finish::length);
    CHECK(size_at(w.json(), "choices.0.logprobs.tokens") == 12);
    CHECK(number_at(w.json(), "choices.0.logprobs.token_logprobs.9") == -12);
  }
}

TEST_CASE("of two prompts, the one that is scored and over is not computed again after a loss") {
  request_world w{R"({"model":"tiny","prompt":[[3,4,5],[6,7,8]],"max_tokens":0,"echo":true,)"
                  R"("logprobs":0})",
                  environment{}};
  w.admit_all();
  prefilled first;
  first.tokens = {w.drawn(0)};
  first.scores.resize(2);
  w.books.prefills->promises.front().deliver(first);
  w.books.prefills->promises.pop_front();
  w.settle();
  w.exchange->add_header("x-lamella-metrics", "1");
  w.tell(lost_atom_v);
  w.rebuild();
  REQUIRE(w.books.scheduler->asked.size() == 1);
  CHECK(w.books.scheduler->asked[0].first == seq(1, 1));
  w.admit_all();
  first.tokens = {w.drawn(0)};
  w.books.prefills->promises.front().deliver(first);
  w.settle();
  CHECK(w.exchange->status == 200);
  CHECK(int_at(parse_json(w.exchange->body), "metrics.recoveries") == 1);
}

TEST_CASE("logits that are not finite fail the request, whichever row they are of") {
  world w;
  w.admit_all();
  w.score_all(false);
  CHECK(w.exchange->status == 500);
  CHECK(w.books.kv->doubted == std::vector<sequence_id>{seq(1)});
  CHECK(w.books.kv->released == std::vector<sequence_id>{seq(1)});
  CHECK(w.over);
}

TEST_CASE("a stream says the prompt when its scores are there, then what follows") {
  world w{R"(,"echo":true,"logprobs":1,"stream":true)"};
  w.admit_all();
  w.advance(std::chrono::seconds{1});
  CHECK(w.exchange->text().empty());
  w.score_all();
  w.say(1, finish::length);
  CHECK(w.exchange->text().ends_with(w.text(2)));
  CHECK(w.exchange->text().size() > w.text(2).size());
  CHECK(w.exchange->streamed.find(R"("token_logprobs":[null,-4.0,)") != std::string::npos);
  CHECK(w.exchange->streamed.find(R"("text_offset":[0,)") != std::string::npos);
  CHECK(w.exchange->done());
  CHECK(w.over);
}

TEST_CASE("a stream says a long prompt piece by piece, each when the socket has taken the last") {
  request_world w{completion_body(450, 1, 5, R"(,"echo":true,"logprobs":0,"stream":true)"),
                  environment{}};
  w.exchange->takes = false;
  w.admit_all();
  prefilled x;
  x.tokens = {w.drawn(0)};
  for (uint32_t i = 1; i < 450; ++i) {
    sampled_token score;
    score.token = 3 + i % 250;
    x.scores.push_back(score);
  }
  w.books.prefills->promises.front().deliver(x);
  w.settle();
  const auto begun = w.exchange->text().size();
  CHECK(begun > 0);
  for (uint32_t pieces = 0; !w.exchange->done(); ++pieces) {
    w.exchange->drain();
    w.settle();
    REQUIRE(pieces < 100);
  }
  CHECK(w.exchange->text().size() > begun + w.text(1).size());
  CHECK(w.exchange->text().ends_with(w.text(1)));
}

TEST_CASE("cancelled while its prompt is scored, a request leaves nothing behind") {
  world w;
  w.admit_all();
  w.exchange->disconnect();
  w.settle();
  CHECK(w.books.prefills->cancelled == std::vector<sequence_id>{seq(1)});
  w.score_all();
  CHECK(w.books.kv->released == std::vector<sequence_id>{seq(1)});
  CHECK(w.over);
}

TEST_CASE("vLLM's prompt_logprobs of choices, beside log probabilities that only answers have") {
  world w{R"(,"prompt_logprobs":0,"logprobs":1)"};
  w.admit_all();
  CHECK(w.books.prefills->asked.at(0).scored == 1);
  w.score_all();
  w.say(1, finish::length);
  CHECK(size_at(w.json(), "choices.0.prompt_logprobs") == 10);
  CHECK(number_at(w.json(), "choices.0.prompt_logprobs.9.12.logprob") == -12);
  CHECK(size_at(w.json(), "choices.0.logprobs.tokens") == 2);
}

TEST_CASE(
    "scores that the memory for bodies has no room for are refused before they are computed") {
  for (const size_t room : {size_t{100}, size_t{1} << 20}) {
    CAPTURE(room);
    request_world w{completion_body(300, 1, 5, R"(,"echo":true,"logprobs":5)"), environment{},
                    65'536, std::make_shared<aside_book>()};
    const auto memory = std::make_shared<byte_budget>(room);
    w.exchange->limit_memory(memory);
    w.run_job();
    const bool fits = room > 100;
    CHECK(w.exchange->status == (fits ? 0 : 503));
    CHECK((memory->held() > 0) == fits); // as long as the request lives
    w.exchange->disconnect();
    w.settle();
    if (fits) w.books.scheduler->promises.front().deliver(caf::make_error(ec::cancelled));
    w.settle();
    CHECK(w.over);
    CHECK(memory->held() == 0);
  }
}

TEST_CASE("prompts echoed before several choices are a part of the memory for bodies") {
  struct row {
    uint32_t choices;
    size_t room;
    bool fits;
  };
  for (const auto& x : {row{1, 100, true}, row{2, 100, false}, row{2, size_t{1} << 20, true}}) {
    CAPTURE(x.choices);
    request_world w{completion_body(300, 1, 5, R"(,"echo":true,"n":)" + std::to_string(x.choices)),
                    environment{}, 65'536, std::make_shared<aside_book>()};
    const auto memory = std::make_shared<byte_budget>(x.room);
    w.exchange->limit_memory(memory);
    w.run_job();
    CHECK(w.exchange->status == (x.fits ? 0 : 503));
    CHECK((memory->held() > 0) == (x.fits && x.choices > 1));
    w.exchange->disconnect();
    w.settle();
    if (x.fits) w.books.scheduler->promises.front().deliver(caf::make_error(ec::cancelled));
    w.settle();
    CHECK(w.over);
    CHECK(memory->held() == 0);
  }
}

} // namespace lamella::actors::test
