// What a request asks for is what it gets: ends, choices, log probabilities, numbers.
#include "actors/protocol/tokens.hpp"
#include "tests/actors/gateway/served.hpp"

#include <cmath>
#include <set>

namespace lamella::actors::test {
namespace {

/// A body for /v1/completions: `more` is appended to the members.
std::string completion(const std::string& more, uint32_t prompt = 12, uint64_t seed = 5) {
  return R"({"model":"tiny","prompt":)" + token_list(prompt, seed)
         + R"(,"ignore_eos":true,"seed":7)" + (more.empty() ? "" : ",") + more + "}";
}

std::string chat(const std::string& more) {
  return R"({"model":"tiny","messages":[{"role":"user","content":"hello there"}],"seed":7)"
         + (more.empty() ? std::string{} : "," + more) + "}";
}

/// The bytes of the tokens of a chat choice, one string each.
std::vector<std::string> tokens_of(const json_value& body, const std::string& choice = "0") {
  std::vector<std::string> result;
  const auto path = "choices." + choice + ".logprobs.content";
  for (size_t i = 0; i < size_at(body, path); ++i) {
    const auto bytes = path + "." + std::to_string(i) + ".bytes";
    std::string token;
    for (size_t k = 0; k < size_at(body, bytes); ++k)
      token += static_cast<char>(int_at(body, bytes + "." + std::to_string(k)));
    result.push_back(token);
  }
  return result;
}

} // namespace

TEST_CASE("A stop string across token borders cuts the text before it") {
  served s;
  const auto whole =
      s.post("/v1/chat/completions", chat(R"("ignore_eos":true,"max_tokens":40,"logprobs":true)"));
  REQUIRE_MESSAGE(whole.status == 200, whole.body);
  const auto text = text_at(whole.json, "choices.0.message.content");
  // Two printable characters in a row that stand nowhere before: from two tokens, as most are
  // bytes.
  std::string stop;
  for (size_t i = 1; i + 2 < text.size() && stop.empty(); ++i) {
    const auto pair = text.substr(i, 2);
    if (pair[0] > 32 && pair[0] < 127 && pair[1] > 32 && pair[1] < 127 && pair[0] != '"'
        && pair[0] != '\\' && pair[1] != '"' && pair[1] != '\\' && text.find(pair) == i)
      stop = pair;
  }
  REQUIRE_FALSE(stop.empty());
  CAPTURE(stop);
  const auto before = text.substr(0, text.find(stop));
  const auto body = R"("ignore_eos":true,"max_tokens":40,"stop":["never there",")" + stop + R"("])";
  const auto cut = s.post("/v1/chat/completions", chat(body));
  REQUIRE_MESSAGE(cut.status == 200, cut.body);
  CHECK(text_at(cut.json, "choices.0.message.content") == before);
  CHECK(text_at(cut.json, "choices.0.finish_reason") == "stop");
  CHECK(int_at(cut.json, "usage.completion_tokens") < 40);
  const auto streamed = s.stream("/v1/chat/completions", chat(body + R"(,"stream":true)"));
  CHECK(streamed.text == before);
  CHECK(eventually([&] { return s.idle(); }));
}

TEST_CASE("Stop ids end an answer and are not part of its text; min_tokens holds them back") {
  served s;
  const auto whole =
      s.post("/v1/chat/completions", chat(R"("ignore_eos":true,"max_tokens":30,"logprobs":true)"));
  REQUIRE_MESSAGE(whole.status == 200, whole.body);
  const auto tokens = tokens_of(whole.json);
  REQUIRE(tokens.size() == 30);
  // The first single byte that was not drawn before it.
  size_t which = 1;
  const auto seen_before = [&](size_t i) {
    return tokens[i].size() != 1
           || std::find(tokens.begin(), tokens.begin() + static_cast<ptrdiff_t>(i), tokens[i])
                  != tokens.begin() + static_cast<ptrdiff_t>(i);
  };
  while (which < 29 && seen_before(which)) ++which;
  const auto id = std::to_string(3 + static_cast<unsigned char>(tokens[which][0]));
  const auto body =
      R"("ignore_eos":true,"max_tokens":30,"logprobs":true,"stop_token_ids":[)" + id + "]";
  const auto cut = s.post("/v1/chat/completions", chat(body));
  REQUIRE_MESSAGE(cut.status == 200, cut.body);
  CHECK(text_at(cut.json, "choices.0.finish_reason") == "stop");
  CHECK(int_at(cut.json, "choices.0.stop_reason") == std::stoll(id));
  CHECK(int_at(cut.json, "usage.completion_tokens") == static_cast<int64_t>(which) + 1);
  const auto got = tokens_of(cut.json);
  CHECK(
      got
      == std::vector<std::string>(tokens.begin(), tokens.begin() + static_cast<ptrdiff_t>(which)));
  const auto held =
      s.post("/v1/chat/completions", chat(body + R"(,"min_tokens":)" + std::to_string(which + 3)));
  REQUIRE_MESSAGE(held.status == 200, held.body);
  CHECK(int_at(held.json, "usage.completion_tokens") >= static_cast<int64_t>(which) + 3);
}

TEST_CASE("max_tokens is exact, and an end token ends unless it is ignored") {
  served s;
  for (int n : {1, 2, 33, 65}) {
    const auto x = s.post("/v1/completions", completion(R"("max_tokens":)" + std::to_string(n)));
    REQUIRE_MESSAGE(x.status == 200, x.body);
    CHECK(int_at(x.json, "usage.completion_tokens") == n);
    CHECK(int_at(x.json, "usage.prompt_tokens") == 12);
    CHECK(int_at(x.json, "usage.total_tokens") == n + 12);
    CHECK(text_at(x.json, "choices.0.finish_reason") == "length");
  }
  // A large bias makes the end token certain.
  const auto ended =
      s.post("/v1/chat/completions", chat(R"("logit_bias":{"2":100},"max_tokens":9)"));
  REQUIRE_MESSAGE(ended.status == 200, ended.body);
  CHECK(text_at(ended.json, "choices.0.finish_reason") == "stop");
  CHECK(text_at(ended.json, "choices.0.message.content").empty());
  CHECK(int_at(ended.json, "usage.completion_tokens") == 1);
  const auto ignored = s.post("/v1/chat/completions",
                              chat(R"("logit_bias":{"2":100},"max_tokens":9,"ignore_eos":true)"));
  CHECK(int_at(ignored.json, "usage.completion_tokens") == 9);
  // Tokens without text still tell their log probabilities.
  const auto hidden =
      s.post("/v1/chat/completions",
             chat(R"("logit_bias":{"2":100},"max_tokens":3,"ignore_eos":true,"logprobs":true)"));
  CHECK(tokens_of(hidden.json).size() == 3);
}

TEST_CASE("The same seed gives the same answer, another seed another one") {
  served s;
  const auto ask = [&](int seed) {
    const auto x =
        s.post("/v1/completions",
               R"({"model":"tiny","prompt":"the","max_tokens":24,"ignore_eos":true,"seed":)"
                   + std::to_string(seed) + "}");
    REQUIRE_MESSAGE(x.status == 200, x.body);
    return text_at(x.json, "choices.0.text");
  };
  CHECK(ask(1) == ask(1));
  CHECK(ask(1) != ask(2));
}

TEST_CASE("Log probabilities are sorted, sum to at most one, and agree with the drawn token") {
  served s;
  const auto x =
      s.post("/v1/chat/completions",
             chat(R"("ignore_eos":true,"max_tokens":24,"logprobs":true,"top_logprobs":20)"));
  REQUIRE_MESSAGE(x.status == 200, x.body);
  const std::string path = "choices.0.logprobs.content";
  REQUIRE(size_at(x.json, path) == 24);
  int found = 0;
  for (size_t i = 0; i < 24; ++i) {
    const auto entry = at(x.json, path + "." + std::to_string(i));
    REQUIRE(size_at(entry, "top_logprobs") == 20);
    double sum = 0, last = 1;
    for (size_t k = 0; k < 20; ++k) {
      const auto other = at(entry, "top_logprobs." + std::to_string(k));
      const auto logprob = number_at(other, "logprob");
      CHECK(logprob <= last);
      last = logprob;
      sum += std::exp(logprob);
      if (at(other, "bytes") == at(entry, "bytes")) {
        ++found;
        CHECK(logprob == number_at(entry, "logprob"));
      }
    }
    CHECK(sum <= 1 + 1e-5); // 20 float roundings
    CHECK(number_at(entry, "logprob") <= 0);
  }
  CHECK(found > 0);
}

// Greedy with penalties, recomputed: the log probabilities that the API tells are those before
// penalties, so applying the penalties to a complete-enough list must pick the same tokens.
TEST_CASE("Penalties choose what a straightforward recomputation chooses") {
  served s;
  const double presence = 1.5, frequency = 0.25;
  const auto x =
      s.post("/v1/chat/completions",
             chat(R"("ignore_eos":true,"max_tokens":60,"temperature":0,"logprobs":true,)"
                  R"("top_logprobs":20,"presence_penalty":1.5,"frequency_penalty":0.25)"));
  REQUIRE_MESSAGE(x.status == 200, x.body);
  const std::string path = "choices.0.logprobs.content";
  std::map<std::string, int> counts;
  int changed = 0;
  const auto key = [](const json_value& entry) {
    std::string bytes;
    for (size_t k = 0; k < size_at(entry, "bytes"); ++k)
      bytes += static_cast<char>(int_at(entry, "bytes." + std::to_string(k)));
    return bytes;
  };
  for (size_t i = 0; i < 60; ++i) {
    CAPTURE(i);
    const auto entry = at(x.json, path + "." + std::to_string(i));
    std::string best;
    double best_score = -1e300, floor = 0;
    for (size_t k = 0; k < 20; ++k) {
      const auto other = at(entry, "top_logprobs." + std::to_string(k));
      const auto name = key(other);
      const auto count = counts.contains(name) ? counts[name] : 0;
      floor = number_at(other, "logprob");
      const auto score = floor - (count > 0 ? presence + frequency * count : 0);
      if (score > best_score) {
        best_score = score;
        best = name;
      }
    }
    REQUIRE(best_score > floor); // else a token outside the list might win
    CHECK(key(entry) == best);
    changed += best != key(at(entry, "top_logprobs.0"));
    ++counts[key(entry)];
  }
  CHECK(changed > 0); // the penalties had something to do
}

TEST_CASE("Echo, several prompts and n fill the choices in order") {
  served s;
  const auto echoed = s.post("/v1/completions",
                             R"({"model":"tiny","prompt":["hello on","the re"],"n":2,"echo":true,)"
                             R"("max_tokens":3,"ignore_eos":true,"seed":3})");
  REQUIRE_MESSAGE(echoed.status == 200, echoed.body);
  REQUIRE(size_at(echoed.json, "choices") == 4);
  for (int i = 0; i < 4; ++i) {
    const auto path = "choices." + std::to_string(i);
    CHECK(int_at(echoed.json, path + ".index") == i);
    CHECK(text_at(echoed.json, path + ".text").starts_with(i < 2 ? "hello on" : "the re"));
  }
  CHECK(int_at(echoed.json, "usage.completion_tokens") == 12);
  const auto only =
      s.post("/v1/completions", R"({"model":"tiny","prompt":"hello","echo":true,"max_tokens":0})");
  REQUIRE_MESSAGE(only.status == 200, only.body);
  CHECK(text_at(only.json, "choices.0.text") == "hello");
  CHECK(eventually([&] { return s.idle(); }));
}

// "h" is token 107; 198 and 172 are the two bytes of "é".
TEST_CASE("a character that a prompt of ids leaves unfinished is echoed once, and whole") {
  served s;
  const std::string prompt = R"("model":"tiny","prompt":[107,198],"temperature":0)";
  const std::string drawn = prompt + R"(,"max_tokens":2,"logit_bias":{"172":100})";
  const auto text = [&](const std::string& more) {
    const auto answer = s.post("/v1/completions", "{" + more + "}");
    REQUIRE_MESSAGE(answer.status == 200, answer.body);
    return text_at(answer.json, "choices.0.text");
  };
  CHECK(text(drawn + R"(,"echo":true)") == "h\u00E9\uFFFD");
  CHECK(text(drawn) == "\uFFFD\uFFFD"); // a text of its own
  CHECK(s.stream("/v1/completions", "{" + drawn + R"(,"echo":true,"stream":true})").text
        == "h\u00E9\uFFFD");
  CHECK(text(prompt + R"(,"echo":true,"max_tokens":0)") == "h\uFFFD");
  CHECK(eventually([&] { return s.idle(); }));
}

TEST_CASE("The best of several choices is the one that is likeliest") {
  served s;
  const auto all = s.post("/v1/completions", completion(R"("n":4,"max_tokens":10,"logprobs":0)"));
  const auto best =
      s.post("/v1/completions", completion(R"("best_of":4,"max_tokens":10,"logprobs":0)"));
  REQUIRE_MESSAGE(best.status == 200, best.body);
  REQUIRE(size_at(best.json, "choices") == 1);
  const auto mean = [](const json_value& body, const std::string& choice) {
    double sum = 0;
    for (int i = 0; i < 10; ++i)
      sum += number_at(body, "choices." + choice + ".logprobs.token_logprobs." + std::to_string(i));
    return sum;
  };
  const auto got = mean(best.json, "0");
  double highest = -1e300;
  for (int k = 0; k < 4; ++k) highest = std::max(highest, mean(all.json, std::to_string(k)));
  CHECK(got == doctest::Approx(highest));
  CHECK(eventually([&] { return s.idle(); }));
}

TEST_CASE("Streams carry the same answer, usage on demand, and the choices of n") {
  served s;
  const auto whole = s.post("/v1/chat/completions", chat(R"("ignore_eos":true,"max_tokens":30)"));
  const auto streamed =
      s.stream("/v1/chat/completions",
               chat(R"("ignore_eos":true,"max_tokens":30,"stream":true,)"
                    R"("stream_options":{"include_usage":true,"continuous_usage_stats":true})"));
  REQUIRE(streamed.complete);
  CHECK(streamed.text == text_at(whole.json, "choices.0.message.content"));
  REQUIRE(streamed.chunks.size() > 2);
  const auto& last = streamed.chunks.back();
  CHECK(size_at(last, "choices") == 0);
  CHECK(at(last, "usage.completion_tokens") == at(whole.json, "usage.completion_tokens"));
  CHECK(at(last, "usage.prompt_tokens") == at(whole.json, "usage.prompt_tokens"));
  int64_t before = 0;
  for (const auto& chunk : streamed.chunks) {
    const auto now = int_at(chunk, "usage.completion_tokens");
    CHECK(now >= before);
    before = now;
  }
  CHECK(before == 30);
  const auto three = s.stream("/v1/chat/completions",
                              chat(R"("ignore_eos":true,"max_tokens":8,"stream":true,"n":3)"));
  std::set<int64_t> finished;
  for (const auto& chunk : three.chunks)
    if (!at(chunk, "choices.0.finish_reason").is_null())
      finished.insert(int_at(chunk, "choices.0.index"));
  CHECK(finished == std::set<int64_t>{0, 1, 2});
}

TEST_CASE("/tokenize counts what a request is billed for") {
  served s;
  const auto count = s.post("/tokenize", R"({"model":"tiny","messages":[{"role":"user",)"
                                         R"("content":"hello there"}]})");
  REQUIRE_MESSAGE(count.status == 200, count.body);
  const auto x = s.post("/v1/chat/completions", chat(R"("max_tokens":1)"));
  CHECK(int_at(count.json, "count") == int_at(x.json, "usage.prompt_tokens"));
  CHECK(int_at(count.json, "count") == static_cast<int64_t>(size_at(count.json, "tokens")));
}

TEST_CASE("/tokenizer_info has what a client needs to lay out and count prompts itself") {
  served s;
  const auto x = s.get("/tokenizer_info");
  REQUIRE(x.status == 200);
  CHECK(text_at(x.json, "chat_template").find("messages") != std::string::npos);
  CHECK(int_at(x.json, "model_max_length") > 0);
  CHECK(at(x.json, "pad_token").is_null());
  // The texts are those of the tokens.
  const auto end = s.post("/detokenize", R"({"tokens":[2]})");
  CHECK(text_at(x.json, "eos_token") == text_at(end.json, "prompt"));
  CHECK(s.post("/tokenizer_info", "{}").status == 405);
}

TEST_CASE("The default length of an answer fits a pool smaller than the context") {
  auto x = tiny_settings();
  x.kv.bytes = 200 * 576;
  served s{x};
  const auto got = s.post("/v1/chat/completions", chat(R"("ignore_eos":true)"));
  REQUIRE_MESSAGE(got.status == 200, got.body);
  CHECK(int_at(got.json, "usage.total_tokens") == 200 - 32);
}

} // namespace lamella::actors::test
